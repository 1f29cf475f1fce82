# shellcheck shell=bash
# Which run a nightly run is compared with, and what comes of it. Sourced by jobs/nightly.sh.

# find_baseline: set BASELINE to the results directory to compare with; empty when this run is to become it.
find_baseline() {
    BASELINE=${PFFBENCH_BASELINE:-}
    if [[ -n $BASELINE ]]; then
        if [[ ! -r $BASELINE/run.json ]]; then die "PFFBENCH_BASELINE=$BASELINE: there is no run in it"; fi
    elif [[ -e $KEPT ]]; then
        BASELINE=$(<"$KEPT")
        if [[ $BASELINE != /* ]]; then BASELINE=$OUT/$BASELINE; fi
        if [[ ! -r $BASELINE/run.json ]]; then
            die "$KEPT names $BASELINE, where there is no run; without that file the next valid run is the baseline"
        fi
    fi
}

# keep_baseline DIR: make a run the baseline, unless another job was faster to.
keep_baseline() {
    if (set -o noclobber && basename "$1" >"$KEPT") 2>/dev/null; then
        say "this run is the baseline from now on, as $KEPT says; nothing was compared"
    else
        find_baseline
    fi
}

# compare_with_baseline DIR: compare a run, and let the job end as that says.
# shellcheck disable=SC2034  # `finish` reads MEANING and WORST
compare_with_baseline() {
    local status=0 out=$1-compare
    say "compared with $BASELINE:"
    COLUMNS=160 "$PYTHON" -m pffbench compare "$BASELINE" "$1" --fail-if-slower "$ALLOWED" --out "$out" || status=$?
    case $status in
        0) MEANING="all well: nothing is slower than the baseline by more than $ALLOWED" ;;
        1) MEANING="shown to be slower than the baseline by more than $ALLOWED, see $out/compare.md" ;;
        2) MEANING="not comparable with the baseline $BASELINE" ;;
        4) MEANING="too few repetitions to tell whether it is slower by more than $ALLOWED, see $out/compare.md" ;;
        5) MEANING="the machine has changed since the baseline: raw transfers differ, see $out/compare.md" ;;
    esac
    # Python ends with 1 when it fails itself.
    if ((status == 1)) && [[ ! $out/compare.md -nt $1/run.json ]]; then MEANING="the comparison failed"; fi
    WORST=$status
}
