# shellcheck shell=bash
# Which runs a nightly run is compared with, and what comes of it. Sourced by jobs/nightly.sh.

NIGHTS=7 # of a baseline: if it grew for ever, it would follow a program that becomes a bit slower each night

# find_baseline: set BASELINE to the results directories to compare with; none for the first night.
find_baseline() {
    local dir names='' source=PFFBENCH_BASELINE
    BASELINE=()
    if [[ -n ${PFFBENCH_BASELINE:-} ]]; then
        names=${PFFBENCH_BASELINE//:/$'\n'}
    elif [[ -e $KEPT ]]; then
        names=$(<"$KEPT") source=$KEPT
    fi
    while read -r dir; do
        if [[ -z $dir ]]; then continue; fi
        if [[ $source == "$KEPT" && $dir != /* ]]; then dir=$OUT/$dir; fi
        if [[ ! -r $dir/run.json ]]; then die "$source=$dir: there is no run in it"; fi
        BASELINE+=("$dir")
    done <<<"$names"
}

# judge_night DIR: compare a run with the baseline, let the job end as that says, and add the run to the baseline while it grows.
judge_night() {
    local dir number=$((${#BASELINE[@]} + 1))
    for dir in "${BASELINE[@]}"; do
        if [[ $dir -ef $1 ]]; then return; fi # judged by an earlier start of this job
    done
    if ((number > 1)); then compare_with_baseline "$1"; fi
    # 4 comes with --strict, and does not say that anything is slower either.
    if [[ -n ${PFFBENCH_BASELINE:-} || ! $WORST =~ ^[04]$ ]] || ((number > NIGHTS)); then return; fi
    # The line before may have been written by hand, without an end.
    if [[ -s $KEPT && -n $(tail -c 1 "$KEPT") ]]; then echo >>"$KEPT"; fi
    basename "$1" >>"$KEPT"
    say "this run is night $number of at most $NIGHTS in the baseline, as $KEPT says"
    if ((number == 1)); then MEANING="all well: the first night of a baseline, so nothing was compared"; fi
}

# compare_with_baseline DIR: compare a run, and let the job end as that says.
# shellcheck disable=SC2034  # `finish` reads MEANING and WORST
compare_with_baseline() {
    local status=0 out=$1-compare text line shown='' more
    read -ra more <<<"${PFFBENCH_COMPARE:-}"
    say "compared with $(printf '%s ' "${BASELINE[@]}"):"
    text=$(COLUMNS=160 "$PYTHON" -m pffbench compare "${BASELINE[@]}" -- "$1" --fail-if-slower "$ALLOWED" --out "$out" \
        "${more[@]}") || status=$?
    printf '%s\n' "$text"
    line=${text##*$'\n'} # the last one is that of the gate
    if [[ $line =~ a\ slowdown\ of\ [0-9.]+\ % ]]; then shown=${BASH_REMATCH[0]}; fi
    case $status:$line in
        0:PASSED:*) MEANING="all well: it is shown that nothing is slower than the baseline by more than $ALLOWED" ;;
        0:SLOWER*) MEANING="all well: shown to be slower than the baseline, by no more than $ALLOWED, see $out/compare.md" ;;
        0:*) MEANING="all well: nothing is shown to be slower than the baseline; $shown or more would have been" ;;
        1:FAILED:*) MEANING="shown to be slower than the baseline by more than $ALLOWED, see $out/compare.md" ;;
        2:"NOT COMPARABLE":*) MEANING="not comparable with the baseline, see $out/compare.md" ;;
        4:*) MEANING="not shown to be as fast as the baseline; $shown or more would have been shown, see $out/compare.md" ;;
        5:*PERHAPS*) MEANING="slower than the baseline, and raw transfers perhaps as much, see $out/compare.md" ;;
        5:*) MEANING="the machine has changed since the baseline: raw transfers differ by more than $ALLOWED, see $out/compare.md" ;;
        *) MEANING="the comparison failed, as said above" ;;
    esac
    WORST=$status
}
