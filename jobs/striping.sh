# shellcheck shell=bash
# Striping: over how many servers of Lustre the files under test are spread. Sourced by jobs/lib.sh. The variables are
# recorded with the environment of a run.

# check_striping: refuse what the file system would refuse, before anything is submitted or measured.
check_striping() {
    local count=${PFFBENCH_STRIPES:-} size=${PFFBENCH_STRIPE_SIZE:-} pool=${PFFBENCH_STRIPE_POOL:-}
    local layout=${PFFBENCH_STRIPE_LAYOUT:-}
    if [[ -z $count$size$pool$layout ]]; then return; fi
    if [[ -z $SITE_STRIPING ]]; then
        die "the file system of site $PFFBENCH_SITE has no striping to set; unset PFFBENCH_STRIPES, PFFBENCH_STRIPE_SIZE," \
            "PFFBENCH_STRIPE_POOL and PFFBENCH_STRIPE_LAYOUT"
    fi
    if [[ -n $count && ! $count =~ ^(-1|[1-9][0-9]{0,3})$ ]]; then
        die "PFFBENCH_STRIPES=$count: it is a number of servers, or -1 for all"
    fi
    if [[ -n $count && -n $SITE_MOST_STRIPES ]] && ((count < 0 || count > SITE_MOST_STRIPES)); then
        die "PFFBENCH_STRIPES=$count: site $PFFBENCH_SITE allows at most $SITE_MOST_STRIPES"
    fi
    if [[ -n $size ]] && { [[ ! $size =~ ^[1-9][0-9]{0,5}[KMG]$ ]] || { [[ $size == *K ]] && ((${size%K} % 64)); }; }; then
        die "PFFBENCH_STRIPE_SIZE=$size: it is a multiple of 64K, such as 64K, 16M or 1G"
    fi
    if [[ -n $pool && ! $pool =~ ^[A-Za-z0-9_.-]{1,15}$ ]]; then
        die "PFFBENCH_STRIPE_POOL=$pool: it is the name of a pool of servers, such as capacity; see lfs pool_list"
    fi
    if [[ -n $layout && -n $count$size$pool ]]; then
        die "PFFBENCH_STRIPE_LAYOUT has counts, sizes and pools of its own; unset the other PFFBENCH_STRIPE… variables"
    fi
    # The components of a progressive layout: where each ends, and what it has.
    if [[ -n $layout && ! $layout =~ ^-E\ +[0-9]+[KMGT]?( +-[cSpLz]\ +[A-Za-z0-9_.-]+| +-E\ +(-1|eof|[0-9]+[KMGT]?))*$ ]]; then
        die "PFFBENCH_STRIPE_LAYOUT=$layout: it is the components of a progressive layout for lfs setstripe, such as" \
            "'-E 1G -c 1 -E -1 -c 8 -S 16M'"
    fi
}

# stripe DIR: let the files of a directory be spread as the variables say.
stripe() {
    local -a words=()
    if [[ -n ${PFFBENCH_STRIPE_LAYOUT:-} ]]; then
        read -ra words <<<"$PFFBENCH_STRIPE_LAYOUT"
    elif [[ -n ${PFFBENCH_STRIPES:-}${PFFBENCH_STRIPE_SIZE:-}${PFFBENCH_STRIPE_POOL:-} ]]; then
        if [[ -n $SITE_STRIPE_POOL ]]; then export PFFBENCH_STRIPE_POOL=${PFFBENCH_STRIPE_POOL:-$SITE_STRIPE_POOL}; fi
        if [[ -n ${PFFBENCH_STRIPES:-} ]]; then words+=(--stripe-count "$PFFBENCH_STRIPES"); fi
        if [[ -n ${PFFBENCH_STRIPE_SIZE:-} ]]; then words+=(--stripe-size "$PFFBENCH_STRIPE_SIZE"); fi
        if [[ -n ${PFFBENCH_STRIPE_POOL:-} ]]; then words+=(--pool "$PFFBENCH_STRIPE_POOL"); fi
    else
        return 0
    fi
    say "striping: lfs setstripe ${words[*]} $1"
    lfs setstripe "${words[@]}" "$1" || die "the files under test cannot be striped as PFFBENCH_STRIPE… say; see above"
}
