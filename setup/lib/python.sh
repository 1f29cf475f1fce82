# shellcheck shell=bash
# The Python side: an interpreter to build on, uv to install with, the private virtual environment.

# usable_python EXE: new enough, able to make a virtual environment, and with the headers that extensions compile against.
usable_python() {
    "$1" -I -c '
import os, sys, sysconfig, venv, ensurepip
ok = sys.version_info >= (3, 11) and sys.implementation.name == "cpython"
sys.exit(not (ok and os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h"))))' >/dev/null 2>&1
}

# find_python: set BASE_PYTHON. The distribution's comes first: its headers can be installed with it.
find_python() {
    local name exe
    for name in ${PFFBENCH_BASE_PYTHON:-/usr/bin/python3 python3 python3.11 python3.12 python3.13 python3.14}; do
        exe=$(type -P "$name") || continue
        if usable_python "$exe"; then
            # The interpreter itself, not a wrapper (pyenv) nor an active environment's link.
            BASE_PYTHON=$("$exe" -I -c 'import os, sys; print(os.path.realpath(sys._base_executable))')
            return 0
        fi
    done
    return 1
}

# uv knows nothing of pip's configuration; a site that has set up pip for its mirror or its certificates has said it once.
take_over_pip_settings() {
    local key value
    while IFS='=' read -r key value; do
        value=${value#\'} value=${value%\'}
        case $key in
            *.index-url) export UV_DEFAULT_INDEX=${UV_DEFAULT_INDEX:-$value} ;;
            *.extra-index-url) export UV_INDEX=${UV_INDEX:-$value} ;;
            *.cert) export SSL_CERT_FILE=${SSL_CERT_FILE:-$value} ;;
        esac
    done < <("$1" -I -m pip config list 2>/dev/null)
    # Prefer the certificates of the system: uv's own do not know a site's proxy. (The second is the name in older versions.)
    export UV_SYSTEM_CERTS=${UV_SYSTEM_CERTS:-1} UV_NATIVE_TLS=${UV_NATIVE_TLS:-1}
}

# need_uv PYTHON: set UV to the pinned uv in .build/tools, installed there with pip when it is not yet.
need_uv() {
    local pin
    pin=$(sed -nE 's/^(uv==[^ ;]+).*/\1/p' "$(locks_of "$1")/build-requirements.lock")
    UV=$BUILD/tools/bin/uv
    if [[ ! -x $UV || $(cat "$BUILD/tools/.pin" 2>/dev/null) != "$pin" ]]; then
        step uv "installing $pin" install_uv "$1" "$pin" || exit
    fi
    take_over_pip_settings "$BUILD/tools/bin/python"
    if [[ ! -w ${HOME:-/nonexistent} ]]; then export UV_CACHE_DIR=${UV_CACHE_DIR:-$BUILD/uv-cache}; fi
}

# take_packages_from DIR: have pip and uv look into DIR alone. As an address: pip separates directories by spaces, uv by commas.
# uv has no variable for "no index", and without network it asks none.
take_packages_from() {
    local address
    find_python || die "no Python >= 3.11 with headers and venv was found"
    address=$("$BASE_PYTHON" -I -c 'import pathlib, sys; print(pathlib.Path(sys.argv[1]).as_uri())' "$1")
    export PIP_NO_INDEX=1 PIP_FIND_LINKS=$address UV_FIND_LINKS=$address UV_OFFLINE=1
}

install_uv() {
    # Joined by &&: `set -e` is off inside a command whose failure is handled, as a step's is.
    rm -rf "$BUILD/tools" &&
        "$1" -m venv "$BUILD/tools" &&
        "$BUILD/tools/bin/python" -m pip install --disable-pip-version-check --retries 1 "$2" &&
        echo "$2" >"$BUILD/tools/.pin"
}

# locks_of PYTHON: print the directory of the versions that are locked for this Python: that of the newest Python not after it.
# Each has the newest that its Python can have: what is measured should be what people install today.
locks_of() {
    "$1" -I -c '
import os, sys
def version(name): return tuple(map(int, name.split(".")))
known = [name for name in os.listdir(sys.argv[1]) if version(name) <= sys.version_info[:2]]
print(os.path.join(sys.argv[1], max(known, key=version)))' "$SETUP/locks"
}

# make_venv KIND COMMAND…: make .venv with COMMAND unless it is there and of this kind already.
make_venv() {
    local kind=$1
    shift
    if [[ $(cat "$VENV/.pffbench-kind" 2>/dev/null) == "$kind" && -x $VENV/bin/python ]]; then return 0; fi
    if [[ -d $VENV && ! -e $VENV/.pffbench-kind ]]; then
        die "$VENV exists and was not made by this set-up, so it is left alone. Move it away, or name its Python with
PFFBENCH_PYTHON if it holds a parallel h5py and netCDF4, then run the command again."
    fi
    rm -rf "$VENV"
    step venv "making the virtual environment ${VENV#"$ROOT"/} ($kind)" "$@" || exit
    echo "$kind" >"$VENV/.pffbench-kind"
}

# quoted TEXT: print it as one word of sh. printf %q writes some characters as only Bash reads them.
quoted() {
    local quote="'\\''"
    printf "'%s'" "${1//"'"/$quote}"
}

# install_project: put pffbench itself into .venv, pointing at this checkout, with its console script.
# A path file does what an editable installation does without a build; the sources are the only copy.
install_project() {
    local site
    site=$("$VENV/bin/python" -I -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    printf '%s\n' "$ROOT/src" "$ROOT/analysis" >"$site/pffbench.pth"
    "$VENV/bin/python" -I "$SETUP/metadata.py" "$ROOT" >/dev/null
    # -P: a yaml.py in the current directory is not to be imported.
    printf '#!/bin/sh\nexec %s -P -m pffbench "$@"\n' "$(quoted "$VENV/bin/python")" >"$VENV/bin/pffbench"
    chmod +x "$VENV/bin/pffbench"
}

# install_launcher: where the launcher is called mpiexec.mpich and the like, `mpiexec` beside it may be another MPI's.
install_launcher() {
    rm -f "$VENV/bin/mpiexec"
    if [[ ${NATIVE_MPIEXEC##*/} == mpi*.* ]]; then
        printf '#!/bin/sh\nexec %s "$@"\n' "$(quoted "$NATIVE_MPIEXEC")" >"$VENV/bin/mpiexec"
        chmod +x "$VENV/bin/mpiexec"
    fi
}
