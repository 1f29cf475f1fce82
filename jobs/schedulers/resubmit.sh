# shellcheck shell=bash disable=SC2034  # the variables are read by jobs/lib.sh and jobs/submit
# What PBS and Flux have in common: users cannot queue a job again, so another job goes on with what this one left.

PROOF_OPTIONS=()

# The warning before the end is the remaining time, which pffbench looks up itself.
job_facts() { :; }
requeue() { return 1; }

# why_ended: by the time at which the job was to end, since the signal is the same.
why_ended() {
    if [[ -n $JOB_ENDS ]] && ((EPOCHSECONDS + 5 >= JOB_ENDS)); then
        echo "the time limit is reached"
    else
        echo "cancelled"
    fi
}

# how_to_go_on: the command that submits a job which goes on in the same results directories.
how_to_go_on() {
    local -a line
    line=("PFFBENCH_JOB=$JOB" "$PFFBENCH_HOME/jobs/submit" --site "$PFFBENCH_SITE" --nodes "$NODES"
        --tasks-per-node "$TASKS_PER_NODE" --out "$OUT" "${RESUBMIT_OPTIONS[@]}" "$(basename "$0" .sh)" "${ARGUMENTS[@]}")
    echo "go on in a new job with: $(quoted "${line[@]}")"
}

# time_limit FILE: the minutes that a job may take: --time of jobs/submit, or what the header says.
time_limit() {
    local option time
    time=$(header "$1" time)
    for option in "${OPTIONS[@]}"; do if [[ $option == time=* ]]; then time=${option#time=}; fi; done
    minutes "$time"
}

# minutes TIME: the minutes of a time as sbatch takes it: minutes, minutes:seconds, hours:minutes:seconds, days-hours…
minutes() {
    local days=0 rest=$1
    if [[ ! $rest =~ ^([0-9]+-)?[0-9]+(:[0-9]+){0,2}$ ]]; then die "--time $1: it is minutes, hours:minutes:seconds or days-hours"; fi
    if [[ $rest == *-* ]]; then days=${rest%%-*} rest=${rest#*-}; fi
    IFS=: read -r first second third <<<"$rest"
    if [[ $1 == *-* ]]; then
        echo $((1440 * 10#$days + 60 * 10#$first + 10#${second:-0}))
    elif [[ -n $third ]]; then
        echo $((60 * 10#$first + 10#$second + (10#$third > 0)))
    else
        echo $((10#$first + (10#${second:-0} > 0)))
    fi
}

# translate: set TRANSLATED to the options of jobs/submit as this scheduler has them; TRANSLATE has the names here.
translate() {
    local option name
    TRANSLATED=()
    for option in "${OPTIONS[@]}"; do
        name=${option%%=*}
        if [[ $name == time ]]; then continue; fi
        if [[ -z ${TRANSLATE[$name]:-} ]]; then
            die "--$name: jobs/submit has nothing like it for $SCHEDULER; a profile of your own can have it in SITE_SUBMIT"
        fi
        TRANSLATED+=("${TRANSLATE[$name]}${option#*=}")
    done
}

on_each_node() {
    local -a LAUNCH EXTRA=()
    launcher "$NODES" 1
    "${LAUNCH[@]}" bash -c "$1"
}

# broadcast FILE TARGET: copy a file that all nodes see to a path on every node.
broadcast() { on_each_node "$(quoted cp "$1" "$2")"; }
