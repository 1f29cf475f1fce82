# shellcheck shell=bash
# Functions that the scripts of this directory share: messages, steps with a log, system packages, uv.
set -euo pipefail

SETUP=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
ROOT=$(dirname "$SETUP")
BUILD=$ROOT/.build
VENV=$ROOT/.venv

say() { printf '[%4ds] %s\n' "$SECONDS" "$*"; }
warn() { printf '\npffbench set-up: WARNING: %s\n\n' "$*" >&2; }
die() {
    printf '\npffbench set-up: %s\n' "$*" >&2
    exit 1
}

# lock FILE: wait until no other set-up runs in this checkout. File descriptor 9 has the lock.
lock() {
    local reason
    reason=$({ mkdir -p "${1%/*}" && touch "$1"; } 2>&1) ||
        die "$1 cannot be written (${reason##*: }). Make the environment in your own clone."
    exec 9>"$1"
    if ! flock -n 9; then
        say "another set-up is running in this checkout, waiting for it"
        flock 9
    fi
}

# Messages of pip and uv if they reach no index, and the lines of a log that explain a failure.
NO_NETWORK='Failed to establish a new connection|NameResolutionError|ConnectTimeoutError|dns error|tcp connect error'
ERRORS='(^|[^a-z])(fatal )?error:|undefined reference|cannot find -l|command not found|No such file|Permission denied'
ERRORS+='|No space left|SSLError|[A-Za-z]+Error: '

# step NAME TEXT COMMAND…: run a command with its output in a log. Its exports end with it, and `set -e` is off inside.
step() {
    local log=$BUILD/logs/$1.log text=$2 status=0
    shift 2
    mkdir -p "$BUILD/logs"
    say "$text (log: ${log#"$ROOT"/})"
    ("$@") >"$log" 2>&1 </dev/null || status=$?
    if ((status != 0)) && grep -qE "$NO_NETWORK" "$log"; then
        printf '\npffbench set-up: %s: no package index can be reached (log: %s)\n' "$text" "$log" >&2
    elif ((status != 0)); then
        # A compiler's error is far above the last lines, the traceback of the build tool. One printf, because two steps may
        # fail at the same time.
        printf '\npffbench set-up: this step failed with status %s: %s\n%s\n  the last lines:\n%s\n  the whole log: %s\n' \
            "$status" "$text" "$(grep -nE -A2 "$ERRORS" "$log" | sed -n '1,18s/^/    /p' | cut -c -240)" \
            "$(tail -n 8 "$log" | sed 's/^/    /' | cut -c -240)" "$log" >&2
    fi
    return "$status"
}

installed() { dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep -q 'ok installed'; }

# may_install: whether system packages can be installed without a question. Sets SUDO.
may_install() {
    SUDO=()
    if [[ -n ${PFFBENCH_NO_SYSTEM:-} ]] || ! type -P apt-get >/dev/null; then return 1; fi
    if [[ $(id -u) != 0 ]]; then
        SUDO=(sudo)
        sudo -n true 2>/dev/null
    fi
}

# apt_install PACKAGE…: install packages, and remove none.
apt_install() {
    # One broken third-party source must not stop everything.
    step apt-update "refreshing the list of system packages" apt update || say "continuing with the lists on this machine"
    step apt-install "installing system packages: $*" apt install -y --no-install-recommends --no-remove "$@"
}

apt() { "${SUDO[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 "$@"; }

# find_python: set BASE_PYTHON to a Python that is new enough, with the headers for extensions. The distribution's comes first,
# because its headers can be installed.
find_python() {
    local name exe
    for name in ${PFFBENCH_BASE_PYTHON:-/usr/bin/python3 python3 python3.11 python3.12 python3.13 python3.14}; do
        exe=$(type -P "$name") || continue
        # The interpreter itself, not a wrapper (pyenv) and not the link in an active environment.
        BASE_PYTHON=$("$exe" -I -c '
import os, sys, sysconfig, venv, ensurepip
header = os.path.join(sysconfig.get_path("include"), "Python.h")
assert sys.version_info >= (3, 11) and sys.implementation.name == "cpython" and os.path.exists(header)
print(os.path.realpath(sys._base_executable))' 2>/dev/null) && return 0
    done
    return 1
}

# pinned NAME: the line `name==version` of a package in the lock files.
pinned() { cat "$SETUP"/*.lock | sed -nE "s/^($1==[^ ;]+).*/\1/Ip" | sed -n 1p; }

# need_uv PYTHON: set UV to the pinned uv, which pip installs into .build/tools.
need_uv() {
    local pin key value
    pin=$(pinned uv)
    UV=$BUILD/tools/bin/uv
    if [[ "$("$UV" --version 2>/dev/null) " != "uv ${pin#uv==} "* ]]; then
        step uv "installing $pin" install_uv "$1" "$pin" || exit
    fi
    # uv does not read the configuration of pip, in which a site may name its index and its certificates.
    while IFS='=' read -r key value; do
        value=${value#\'} value=${value%\'}
        case $key in
            *.index-url) export UV_DEFAULT_INDEX=${UV_DEFAULT_INDEX:-$value} ;;
            *.extra-index-url) export UV_INDEX=${UV_INDEX:-$value} ;;
            *.cert) export SSL_CERT_FILE=${SSL_CERT_FILE:-$value} ;;
        esac
    done < <("$BUILD/tools/bin/python" -I -m pip config list 2>/dev/null)
    export UV_SYSTEM_CERTS=${UV_SYSTEM_CERTS:-1}
    if [[ ! -w ${HOME:-/nonexistent} ]]; then export UV_CACHE_DIR=${UV_CACHE_DIR:-$BUILD/uv-cache}; fi
}

install_uv() {
    rm -rf "$BUILD/tools" && "$1" -m venv "$BUILD/tools" &&
        "$BUILD/tools/bin/python" -m pip install --disable-pip-version-check --retries 1 "$2"
}

# compile_modules DIRECTORY…: compile once. Otherwise every rank would compile at every start if Python may not write there. Files
# that do not compile are for another version of Python, and the tests of packages are never imported.
compile_modules() {
    "$VENV/bin/python" -m compileall -q -j 0 -x 'site-packages/.*/tests/' "$@" || true
}

# layer_over PYTHON: make VENV an environment of the same interpreter that also finds the packages of PYTHON.
layer_over() {
    local site
    "$1" -m venv --without-pip "$VENV" || return
    site=$("$VENV/bin/python" -I -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    # addsitedir, not the bare path, because that environment may have path files (editable installations).
    "$1" -P -c '
import os, sys, sysconfig
own = {os.path.realpath(sysconfig.get_path(k)) for k in ("stdlib", "platstdlib")}
for path in sys.path:
    if os.path.isdir(path) and os.path.basename(path) != "lib-dynload" and os.path.realpath(path) not in own:
        print(f"import site; site.addsitedir({path!r})")' >"$site/active-environment.pth"
}
