# shellcheck shell=bash
# What only the tests use: programs that look at files, a browser, a Slurm for the test cluster, a file system on it.
#
# All of it is installed by `make test` alone, where that asks nobody. Without it those tests do not run and say so.

# Program and package, by what the tests do with them. The names are the same from Debian 12 and Ubuntu 22.04 on.
FILE_TOOLS=(h5dump hdf5-tools h5ls hdf5-tools ncdump netcdf-bin shellcheck shellcheck patchelf patchelf strace strace)
# The names are those of Debian; Ubuntu has Chromium as a snap only, which is not installed here.
BROWSER_TOOLS=(chromium chromium chromedriver chromium-driver)
SLURM_TOOLS=(munged munge slurmctld slurmctld slurmd slurmd srun slurm-client sbatch slurm-client
    ip iproute2 mount mount unshare util-linux nsenter util-linux)
MOOSEFS_TOOLS=(mfsmaster moosefs-master mfschunkserver moosefs-chunkserver mfsmount moosefs-client mfscli moosefs-cli)

# The packages whose installation starts a daemon of the same name, now and at every boot. The tests start their own.
DAEMONS=(munge slurmctld slurmd moosefs-master moosefs-chunkserver)

# lacking PROGRAM PACKAGE …: the packages of those programs that are not there, each once.
lacking() {
    local names=()
    while (($#)); do
        PATH=$PATH:/usr/sbin:/sbin type -P "$1" >/dev/null || names+=("$2")
        shift 2
    done
    if ((${#names[@]})); then printf '%s\n' "${names[@]}" | sort -u; fi
}

# no_namespaces: print why this machine lets no virtual nodes be made; status 1 when it does. Without them Slurm would be
# installed in vain.
no_namespaces() {
    local user=(--user --map-root-user) said
    if [[ $(id -u) == 0 ]]; then user=(); fi
    if said=$(unshare "${user[@]}" --mount --net --pid --uts --ipc --fork --mount-proc true 2>&1); then return 1; fi
    echo "${said:-unshare failed}"
}

# install_test_tools: what is missing of all this, where it can be had without asking. Never fails: tests say what they miss.
install_test_tools() {
    local names browser slurm moosefs why
    mapfile -t names < <(lacking "${FILE_TOOLS[@]}")
    offer "the tests that use them do not run" "${names[@]}"
    mapfile -t browser < <(lacking "${BROWSER_TOOLS[@]}")
    offer "the tests of the report page in a browser do not run" "${browser[@]}"
    mapfile -t slurm < <(lacking "${SLURM_TOOLS[@]}")
    if ((${#slurm[@]})) && why=$(no_namespaces); then
        warn "the tests marked slurm do not run: this machine allows no namespaces (a container without the right?): $why"
        return 0
    fi
    offer "the tests marked slurm do not run" "${slurm[@]}"
    # Only root may mount it.
    if [[ $(id -u) == 0 && -c /dev/fuse ]]; then
        mapfile -t moosefs < <(lacking "${MOOSEFS_TOOLS[@]}")
        offer "the tests on a distributed file system do not run" "${moosefs[@]}"
    fi
}

warn() { printf '\npffbench set-up: WARNING: %s\n\n' "$*" >&2; }

# offer CONSEQUENCE PACKAGE …: install these packages, or warn of what follows from their absence.
offer() {
    local consequence=$1 why=
    shift
    if (($# == 0)); then return 0; fi
    if [[ -e $BUILD/over-active ]]; then
        why="an environment is active, so nothing is installed into the system"
    elif ! may_install_silently; then
        why="this user may not install them without being asked${PFFBENCH_NO_SYSTEM:+ (PFFBENCH_NO_SYSTEM is set)}"
    elif tried_today "$@"; then
        why="they could not be installed (see .build/logs; tried again tomorrow, or after: rm .build/tried-*)"
    else
        install_quietly "$@"
        if all_installed "$@"; then return 0; fi
        touch "$(trial_mark "$@")"
        why="they could not be installed (see .build/logs)"
    fi
    warn "$consequence, for lack of: $*
    $why. To install them: apt-get install --no-install-recommends $*"
}

# may_install_silently: whether packages can be installed and nobody has to type a password. Sets SUDO.
may_install_silently() {
    SUDO=
    case $(install_right) in
        root) ;;
        sudo) SUDO=sudo ;;
        *) return 1 ;;
    esac
}

all_installed() {
    local name
    for name; do installed "$name" || return 1; done
}

# A package that the archive lacks must not cost every `make test` a refresh of the lists.
trial_mark() { echo "$BUILD/tried-$(printf '%s ' "$@" | sha256sum | cut -c 1-12)"; }

tried_today() { [[ -n $(find "$(trial_mark "$@")" -mmin -1440 2>/dev/null) ]]; }

# install_quietly PACKAGE …: install those that the archive has, and let no daemon of theirs run.
# Nothing may be removed for it: a Slurm that the administrator installed from elsewhere stays as it is.
install_quietly() {
    local name daemons=() known=()
    step apt-update "refreshing the list of system packages" apt update || true
    for name; do if available "$name"; then known+=("$name"); fi; done
    if ((${#known[@]} == 0)); then return 0; fi
    for name in "${DAEMONS[@]}"; do
        if [[ " ${known[*]} " == *" $name "* ]] && ! installed "$name"; then daemons+=("$name"); fi
    done
    hold_back "${daemons[@]}"
    step "apt-${known[0]}" "installing: ${known[*]}" \
        apt install -y --no-install-recommends --no-remove "${known[@]}" || true
    leave_stopped "${daemons[@]}"
}

# hold_back DAEMON …: before the installation. What systemd holds masked is neither started nor enabled by it.
hold_back() {
    if (($#)) && systemd_runs; then as_root systemctl mask --quiet "${@/%/.service}" 2>/dev/null || true; fi
}

# leave_stopped DAEMON …: after it. Under systemd they stay masked, because a service that was only disabled is enabled again
# when its package is upgraded. An older init has no mask, so what it started is stopped.
leave_stopped() {
    local name
    if systemd_runs; then
        for name; do installed "$name" || as_root systemctl unmask --quiet "$name.service" 2>/dev/null || true; done
        return 0
    fi
    for name; do
        if [[ ! -x /etc/init.d/$name ]]; then continue; fi
        as_root "/etc/init.d/$name" stop || true
        as_root update-rc.d "$name" disable || true
    done >/dev/null 2>&1
}

systemd_runs() { [[ -d /run/systemd/system ]]; }

as_root() {
    # shellcheck disable=SC2086  # SUDO is empty or one word
    ${SUDO:-} "$@"
}
