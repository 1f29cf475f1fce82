# shellcheck shell=bash
# How a job ends before its runs do, what its log says then, and how its next start goes on. Sourced by jobs/lib.sh.

# told_to_end: Slurm ends this job. The reason goes to the log at once: Slurm may kill this shell in a few seconds.
told_to_end() {
    if [[ -n $ENDED_BY_SLURM ]]; then return 0; fi # in a trap, a bare return would take over the status of before
    ENDED_BY_SLURM=1
    local facts reason
    facts=$(job_facts)
    case " $facts " in
        *' Reason=TimeLimit '*) reason="the time limit is reached" ;;
        *' Reason=NodeDown '*) reason="a node failed" ;;
        # Slurm counts the next start before it ends this one.
        *" Restarts=${SLURM_RESTART_COUNT:-0} "*) reason="cancelled" ;;
        *' Restarts='*)
            say "ended by Slurm and queued again, since a node failed or somebody asked for it;" \
                "the next start goes on by itself"
            return 0
            ;;
        *) reason="cancelled, out of time or queued again by somebody" ;;
    esac
    say "ended by Slurm: $reason; $(how_to_go_on "$facts")"
}

# job_facts: what Slurm knows of this job, as words like Requeue=1; nothing when it does not answer soon.
job_facts() {
    timeout 5 scontrol show job -o "$SLURM_JOB_ID" 2>/dev/null |
        grep -oE '\b(Reason|Requeue|Restarts)=[^ ]*' | paste -sd ' ' || true
}

# how_to_go_on [FACTS]: the command that goes on with what is not finished. Slurm starts a job submitted with
# --no-requeue only once.
how_to_go_on() {
    local facts=${1-$(job_facts)}
    if [[ " $facts " == *' Requeue=0 '* && ${#RESULTS[@]} -gt 0 ]]; then
        # The directory may be gone with this job, when everything in it was removed.
        echo "go on in a new job with: ${SCRATCH_MADE:+mkdir -p $SCRATCH_MADE && }srun ${MPI_OPTION[*]}" \
            "--ntasks=$RANKS $SHARED_PYTHON -m pffbench run --resume ${RESULTS[-1]} --other-hosts" \
            "${READS:+--stage read }${SCRATCH_MADE:+--scratch $SCRATCH_MADE}"
    else
        echo "go on by hand with: scontrol requeue $JOB"
    fi
}

# wait_for PID: wait for a child and return its status. The trap of a signal runs at once, and the waiting goes on: of a
# command in the foreground bash would wait for the end first.
wait_for() {
    local status=0
    while wait "$1" || status=$?; ((status > 128)) && kill -0 "$1" 2>/dev/null; do status=0; done
    wait "$1" # bash remembers the status of a child that has ended
}

# never_began DIR STARTS STATUS: whether a step ended before the run in DIR counted one more start. A node that Slurm has
# just brought back may refuse the first step of a job, and srun's status is 0 then where the node's disk has kept the PMIx
# socket of a step that a power cut ended. That a program is wrong (2) is not mended by doing it again, and 128 + 10 is the
# warning.
never_began() {
    (($3 != 2 && $3 != 128 + 10)) && [[ -z $ENDED_BY_SLURM && $(recorded "$1" starts) == "$2" ]]
}

# put_aside DIR: make room where a start ended before it had recorded anything.
put_aside() {
    if [[ ! -d $1 || -e $1/run.json ]]; then return; fi
    local aside=$1.left-${SLURM_RESTART_COUNT:-0}
    say "the start before this one ended before it had recorded anything; what it left: $aside"
    mv "$1" "$aside"
}

# say_where_it_stands DIR: what an earlier start left to go on with.
say_where_it_stands() {
    local what
    case $(recorded "$1" status) in
        running) what="the start before this one ended without a word: its node failed, or it was killed; going on after" ;;
        interrupted) what="going on after" ;;
        *) return ;;
    esac
    say "$what $(repetitions_in "$1") finished repetitions: $1"
}

# repetitions_in DIR: how many are recorded there.
repetitions_in() { tail -n +2 "$1/samples.csv" 2>/dev/null | cut -d, -f1,2 | sort -u | wc -l; }

# restart: put this job back into the queue; its next start goes on with the runs that are not finished.
restart() {
    local count=${SLURM_RESTART_COUNT:-0} limit=${PFFBENCH_RESTARTS:-3}
    if [[ -n $ENDED_BY_SLURM ]]; then
        say "the ranks have saved what is finished"
    elif ((count >= limit)); then
        say "interrupted, and not queued again: restarted $count times (PFFBENCH_RESTARTS=$limit); $(how_to_go_on)"
    elif trap '' TERM && scontrol requeue "$SLURM_JOB_ID"; then # that ends this start, as it is meant to
        say "interrupted before the time limit; the job is queued again (restart $((count + 1)) of at most $limit)"
    else
        say "interrupted, and Slurm refused to queue the job again; $(how_to_go_on)"
    fi
    exit 3
}
