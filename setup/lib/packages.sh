# shellcheck shell=bash
# System packages on Debian and Ubuntu: what is missing, and how it gets installed or asked for.

installed() { dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep -q 'ok installed'; }

available() { apt-cache show --no-all-versions "$1" >/dev/null 2>&1; }

# first_available NAME…: the first that is installed, else that the archive has, else the first: where the package lists
# have not been fetched yet, nothing is known to be available and the usual name is the best answer.
first_available() {
    local name
    for name in "$@"; do if installed "$name"; then echo "$name"; return; fi; done
    for name in "$@"; do if available "$name"; then echo "$name"; return; fi; done
    echo "$1"
}

# The distribution's Python if it is new enough, else the oldest one beside it that is (Ubuntu 22.04: python3.11).
python_package() {
    local name version major minor
    version=$(apt-cache show --no-all-versions python3 2>/dev/null |
        sed -nE 's/^Version: ([0-9]+)\.([0-9]+).*/\1 \2/p') || version=
    read -r major minor _ <<<"${version:-3 11}"
    if ((major == 3 && minor >= 11)); then
        echo python3
        return
    fi
    for name in python3.11 python3.12 python3.13 python3.14; do if available "$name"; then echo "$name"; return; fi; done
    echo python3
}

# missing_packages PYTHON-MISSING NATIVE-MISSING: what must be installed, one a line. Each argument is `yes` or `no`.
missing_packages() {
    local python name names=()
    if [[ $1 == yes ]]; then
        python=$(python_package)
        names+=("$python" "$python-dev" "$python-venv")
    fi
    if [[ $2 == yes ]]; then
        names+=(gcc libc6-dev openmpi-bin libopenmpi-dev libhdf5-openmpi-dev)
        # Either flavour of the parallel netCDF-C will do, and only one can be installed. The first also does CDF-5.
        names+=("$(first_available libnetcdf-pnetcdf-dev libnetcdf-mpi-dev)")
    fi
    # Without certificates nothing can be fetched; without make nobody gets here but CI.
    names+=(ca-certificates make)
    for name in "${names[@]}"; do installed "$name" || echo "$name"; done
}

# How this user may install: `root`, `sudo`, `ask` (sudo with a password, someone at the terminal) or `no`.
install_right() {
    if [[ -n ${PFFBENCH_NO_SYSTEM:-} ]] || ! type -P apt-get >/dev/null; then
        echo no
    elif [[ $(id -u) == 0 ]]; then
        echo root
    elif ! type -P sudo >/dev/null; then
        echo no
    elif sudo -n true 2>/dev/null; then
        echo sudo
    elif [[ -t 0 && -t 2 ]]; then
        echo ask
    else
        echo no
    fi
}

# Everything an administrator has to know, in one message.
ask_administrator() {
    local what=$1
    shift
    local other="If this machine has them elsewhere (modules, Spack, conda, a virtual environment), load or activate them and
run the command again; PFFBENCH_PYTHON=/path/to/python names a Python whose environment is ready."
    if type -P apt-get >/dev/null; then
        die "$what
They need system packages that are not installed, and this user may not install them${PFFBENCH_NO_SYSTEM:+ (PFFBENCH_NO_SYSTEM is set)}. Ask an administrator to run:

    apt-get update && apt-get install --no-install-recommends $*

$other"
    fi
    die "$what
This system has no apt-get, so nothing is installed here. Ask an administrator for: an MPI library with mpicc and mpiexec,
HDF5 built with --enable-parallel, netCDF-C built against that HDF5 with parallel I/O, Python >= 3.11 with its headers.

$other"
}

apt() {
    # shellcheck disable=SC2086  # SUDO is empty or one word
    ${SUDO:-} env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 "$@"
}

# install_packages PYTHON-MISSING NATIVE-MISSING TEXT: install what is missing, or end with the one message.
install_packages() {
    local right names
    right=$(install_right)
    mapfile -t names < <(type -P dpkg-query >/dev/null && missing_packages "$1" "$2")
    # All packages are there and yet something was not found: no administrator can help, and the caller says what failed.
    if type -P dpkg-query >/dev/null && ((${#names[@]} == 0)); then return 0; fi
    if [[ $right == no ]]; then ask_administrator "$3" "${names[@]}"; fi
    SUDO=
    if [[ $right != root ]]; then
        SUDO=sudo
        if [[ $right == ask ]]; then
            say "installing system packages needs your password for sudo: ${names[*]}"
            sudo -v || ask_administrator "$3" "${names[@]}"
        fi
    fi
    # One broken third-party source must not stop everything: if the lists are too bad, the installation says so.
    step apt-update "refreshing the list of system packages" apt update || say "going on with the lists at hand"
    # With fresh lists the names may differ from the guess made without.
    mapfile -t names < <(missing_packages "$1" "$2")
    if ((${#names[@]} == 0)); then return 0; fi
    step apt-install "installing system packages: ${names[*]}" apt install -y --no-install-recommends "${names[@]}" || exit
}
