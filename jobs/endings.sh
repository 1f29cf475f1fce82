# shellcheck shell=bash
# How a job ends before its runs do, what its log says then, and how its next start goes on. Sourced by jobs/lib.sh.

# told_to_end: the scheduler ends this job. The reason goes to the log at once: this shell may be killed in a few seconds.
told_to_end() {
    if [[ -n $ENDED ]]; then return 0; fi # in a trap, a bare return would take over the status of before
    ENDED=1
    local facts reason
    facts=$(job_facts)
    reason=$(why_ended "$facts")
    if [[ -n $reason ]]; then
        say "ended by $SCHEDULER: $reason; $(how_to_go_on "$facts")"
    else
        say "ended by $SCHEDULER and queued again, since a node failed or somebody asked for it;" \
            "the next start goes on by itself"
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
    (($3 != 2 && $3 != 128 + 10)) && [[ -z $ENDED && $(recorded "$1" starts) == "$2" ]]
}

# put_aside DIR: make room where a start ended before it had recorded anything.
put_aside() {
    if [[ ! -d $1 || -e $1/run.json ]]; then return; fi
    local aside=$1.left-$RESTARTS
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
    local limit=${PFFBENCH_RESTARTS:-3}
    if [[ -n $ENDED ]]; then
        say "the ranks have saved what is finished"
    elif ((RESTARTS >= limit)); then
        say "interrupted, and not queued again: restarted $RESTARTS times (PFFBENCH_RESTARTS=$limit); $(how_to_go_on)"
    elif requeue; then
        # shellcheck disable=SC2034  # `finish` reads it
        PFFBENCH_REPORT=0 # the next start makes it
        say "interrupted before the time limit; the job is queued again (restart $((RESTARTS + 1)) of at most $limit)"
    else
        say "interrupted, and $SCHEDULER does not queue the job again; $(how_to_go_on)"
    fi
    exit 3
}
