# shellcheck shell=bash
# Is the environment that was made last still the right one? This must be fast: every make target asks it first.

# active_python: print the Python of the active environment; status 1 when none is active.
active_python() {
    local kind
    if [[ -n ${PFFBENCH_PYTHON:-} ]]; then
        type -P "$PFFBENCH_PYTHON"
    elif [[ ${PFFBENCH_ENV:-} == private ]]; then
        return 1
    elif [[ ${VIRTUAL_ENV:-} == "$VENV" ]]; then
        # Our own: it stays what it is, a layer over another one or a private one.
        kind=$(cat "$VENV/.pffbench-kind" 2>/dev/null)
        if [[ $kind != "over "* ]]; then return 1; fi
        echo "${kind#over }"
    elif [[ -n ${VIRTUAL_ENV:-} && -x $VIRTUAL_ENV/bin/python ]]; then
        echo "$VIRTUAL_ENV/bin/python"
    elif [[ -n ${SPACK_ENV:-}${LOADEDMODULES:-} ]]; then
        type -P python3
    elif [[ -n ${CONDA_PREFIX:-} && -x $CONDA_PREFIX/bin/python ]]; then
        echo "$CONDA_PREFIX/bin/python"
    else
        return 1
    fi
}

# What the environment depends on: this set-up, the project's dependencies, the user's choice of environment, and the files
# that the last check saw in use (interpreter, MPI, HDF5, netCDF), so that a system update is noticed.
state_key() {
    # The key is the same whoever asks, also where a file is missing and `set -e` would end the list early.
    (
        set +e
        find "$SETUP" -type f ! -name '*.pyc' -print0 | LC_ALL=C sort -z | xargs -0 sha256sum
        sha256sum "$ROOT/pyproject.toml"
        active_python
        echo "${PFFBENCH_BASE_PYTHON:-}|${PFFBENCH_MPIEXEC:-}|${MPICC:-}|${HDF5_DIR:-}|${NETCDF4_DIR:-}"
        echo "${SPACK_ENV:-}|${LOADEDMODULES:-}"
        if [[ -e $BUILD/watch ]]; then xargs -d '\n' stat -L -c '%n %s %Y' <"$BUILD/watch"; fi
    ) 2>/dev/null | sha256sum
}

up_to_date() {
    [[ -e $BUILD/env.sh && -x $VENV/bin/python && $(cat "$BUILD/stamp" 2>/dev/null) == "$(state_key)" ]]
}

forget_state() { rm -f "$BUILD/stamp"; }

# remember_state: write what `setup/run` needs, then the stamp, last of all.
remember_state() {
    "$VENV/bin/python" -I -c 'import os, sys; print(os.path.realpath(sys.executable))' >>"$BUILD/watch"
    # Installing or removing a package in an active environment changes its directory; look again then.
    "$VENV/bin/python" -I -c '
import ast, glob, sys
for name in glob.glob("lib/python*/site-packages/active-environment.pth", root_dir=sys.prefix):
    for line in open(f"{sys.prefix}/{name}"):
        print(ast.literal_eval(line.strip().removeprefix("import site; site.addsitedir")))' >>"$BUILD/watch"
    {
        echo "# Written by setup/bootstrap; source it to work in the environment of pffbench."
        printf '. %q\n' "$SETUP/mpi-env.sh"
        printf 'export PFFBENCH_MPIEXEC=%q\n' "$NATIVE_MPIEXEC"
        printf 'export VIRTUAL_ENV=%q\n' "$VENV"
        # Where no launcher is, its directory must not become the current one.
        printf 'export PATH=%q:%q:%s\n' "$VENV/bin" "$(dirname "${NATIVE_MPIEXEC:-$VENV/bin/python}")" "\$PATH"
        # The private environment is complete; what a module or a shell start-up file put there would only shadow it.
        if [[ ! -e $BUILD/over-active ]]; then echo 'unset PYTHONPATH PYTHONHOME'; fi
    } >"$BUILD/env.sh"
    state_key >"$BUILD/stamp"
}
