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

# asked_mpiexec: print the launcher that the user has named. Of the one that .build/env.sh has set, in a shell that uses this
# environment: what had been named when it was made, mostly nothing.
asked_mpiexec() {
    local set
    set=$(printf 'export PFFBENCH_MPIEXEC=%q' "${PFFBENCH_MPIEXEC:-}")
    if [[ ${VIRTUAL_ENV:-} == "$VENV" ]] && grep -qxF -- "$set" "$BUILD/env.sh" 2>/dev/null; then
        cat "$BUILD/mpiexec"
    else
        echo "${PFFBENCH_MPIEXEC:-}"
    fi
}

# dependencies: what pyproject.toml says of them, and its entry points. Nothing else in it changes what is installed.
dependencies() {
    awk '/^ *#/ {next}
        table ~ /^\[project.entry-points/ && !/^\[/ {print table, $0}
        /^\[/ {table = $0; list = 0}
        table == "[project.optional-dependencies]" || table == "[project]" && (list || /^(dependencies|requires-python) *=/) {print}
        table == "[project]" && /^dependencies *=/ {list = 1}
        list && /\] *(#.*)?$/ {list = 0}' "$ROOT/pyproject.toml"
}

# What the environment depends on: this set-up, the project's dependencies, the user's choice of environment, and the files
# that the last check saw in use (interpreter, MPI, HDF5, netCDF), so that a system update is noticed.
state_key() {
    # The key is the same whoever asks, also where a file is missing and `set -e` would end the list early.
    (
        set +e
        find "$SETUP" -type f ! -name '*.pyc' -print0 | LC_ALL=C sort -z | xargs -0 sha256sum
        dependencies
        active_python
        echo "${PFFBENCH_BASE_PYTHON:-}|$(asked_mpiexec)|${MPICC:-}|${HDF5_DIR:-}|${NETCDF4_DIR:-}"
        echo "${SPACK_ENV:-}|${LOADEDMODULES:-}"
        if [[ -e $BUILD/watch ]]; then xargs -d '\n' stat -L -c '%n %s %Y' <"$BUILD/watch"; fi
    ) 2>/dev/null | sha256sum
}

# use_chosen_libraries: where none is named, take the MPI and the libraries that were named when .venv was made, so that a
# command after `setup/mpich make env` does not turn it back. Not with other modules: these name their own. Who sets one of the
# variables, be it to nothing (`MPICC= make env`), has named all of them.
use_chosen_libraries() {
    local modules
    CHOSEN=
    if [[ -n ${MPICC+given}${HDF5_DIR+given}${NETCDF4_DIR+given} || ! -e $BUILD/chosen ]]; then return 0; fi
    modules=$(head -n 1 "$BUILD/chosen")
    if [[ $modules != "# $(chosen_modules)" ]]; then return 0; fi
    CHOSEN=$(grep '^export ' "$BUILD/chosen" | paste -sd ' ')
    # shellcheck source=/dev/null  # written by remember_state
    . "$BUILD/chosen"
}

chosen_modules() { printf '%q\n' "${SPACK_ENV:-} ${LOADEDMODULES:-}"; }

up_to_date() {
    [[ -e $BUILD/env.sh && -x $VENV/bin/python && $(cat "$BUILD/stamp" 2>/dev/null) == "$(state_key)" ]]
}

forget_state() { rm -f "$BUILD/stamp"; }

# remember_state: write what `setup/run` needs, then the stamp, last of all.
remember_state() {
    local name asked
    asked=$(asked_mpiexec) # before env.sh has another one
    echo "$asked" >"$BUILD/mpiexec"
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
    rm -f "$BUILD/chosen"
    if [[ -n ${MPICC:-}${HDF5_DIR:-}${NETCDF4_DIR:-} ]]; then
        echo "# $(chosen_modules)" >"$BUILD/chosen"
        for name in MPICC HDF5_DIR NETCDF4_DIR; do
            if [[ -n ${!name:-} ]]; then printf 'export %s=%q\n' "$name" "${!name}" >>"$BUILD/chosen"; fi
        done
    fi
    state_key >"$BUILD/stamp"
}
