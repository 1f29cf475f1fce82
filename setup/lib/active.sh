# shellcheck shell=bash
# An environment that the user has already made ready: found, checked, used, and never written to.

# use_active: make .venv a thin layer over the active environment. Status 1 when there is none that works.
use_active() {
    local python log=$BUILD/logs/active.log missing=$BUILD/missing.txt
    if ! python=$(active_python); then
        if [[ -n ${PFFBENCH_PYTHON:-} ]]; then die "PFFBENCH_PYTHON=$PFFBENCH_PYTHON is not a program"; fi
        return 1
    fi
    NATIVE_MPIEXEC=$(type -P "${PFFBENCH_MPIEXEC:-mpiexec}" || type -P mpirun || type -P srun || true)
    # The launcher of the same environment, where it has one (PFFBENCH_PYTHON may name an environment that is not active).
    if [[ -z ${PFFBENCH_MPIEXEC:-} && -x ${python%/*}/mpiexec ]]; then NATIVE_MPIEXEC=${python%/*}/mpiexec; fi
    mkdir -p "$BUILD/logs"
    say "an environment is active, checking its parallel HDF5 and netCDF: $python"
    if check_stack "$python" "$log" && "$python" "$SETUP/missing.py" "$(locks_of "$python")/requirements.lock" "$ROOT/pyproject.toml" \
        >"$missing" 2>>"$log"; then
        say "it works and is used as it is: $(grep -m 1 '^h5py ' "$log")"
    else
        local why
        why=$(problem_lines "$log" | sed 's/^/    /')
        if [[ -n ${PFFBENCH_PYTHON:-} ]]; then
            die "the Python that PFFBENCH_PYTHON names has no working parallel stack:
$why
The whole log: $log"
        fi
        say "it is not used, a private one is made, because:"
        printf '%s\n' "$why"
        leave_active
        return 1
    fi
    make_venv "over $python" layer_over "$python"
    if [[ -s $missing ]]; then
        need_uv "$(find_python && echo "$BASE_PYTHON" || echo "$python")"
        step overlay "adding $(grep -c == "$missing") pure helpers to ${VENV#"$ROOT"/} (not to your environment)" \
            "$UV" pip install --python "$VENV/bin/python" --no-deps -r "$missing" || exit
    fi
}

# The layer is a virtual environment of the same interpreter that also looks where the active one looks.
layer_over() {
    local python=$1 site
    "$python" -m venv --without-pip "$VENV" || return
    site=$("$VENV/bin/python" -I -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    "$python" -P -c '
import os, sys, sysconfig
own = {os.path.realpath(sysconfig.get_path(k)) for k in ("stdlib", "platstdlib")}
for path in sys.path:
    if os.path.isdir(path) and os.path.basename(path) != "lib-dynload" and os.path.realpath(path) not in own:
        # addsitedir, not the bare path: that environment may have path files of its own (editable installations).
        print(f"import site; site.addsitedir({path!r})")' >"$site/active-environment.pth"
}

# Take an environment that does not serve out of the way: its compilers and launchers would get mixed into the build.
leave_active() {
    local prefix
    for prefix in "${VIRTUAL_ENV:-}" "${CONDA_PREFIX:-}"; do
        if [[ -n $prefix && $prefix != "$VENV" ]]; then PATH=$(without_path "$prefix/bin"); fi
    done
    export PATH
}

without_path() { printf '%s' "$PATH" | awk -v RS=: -v drop="$1" '$0 != drop {printf "%s%s", sep, $0; sep = ":"}'; }
