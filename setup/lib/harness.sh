# shellcheck shell=bash
# For the tests alone: ReFrame in an environment of its own, which runs the class in share/reframe.

# offer_harness: make the environment unless it is there; the test says what it misses where it cannot be had.
offer_harness() {
    local folder=$BUILD/harness lock=$SETUP/harness-requirements.lock
    if [[ $(cat "$folder/.stamp" 2>/dev/null) == "$(sha256sum <"$lock")" ]]; then return 0; fi
    need_uv "$(find_python && echo "$BASE_PYTHON" || echo "$VENV/bin/python")"
    rm -rf "$folder"
    if step harness "making the environment of ReFrame for the tests" make_harness "$folder" "$lock"; then
        sha256sum <"$lock" >"$folder/.stamp"
    else
        warn "the test of share/reframe does not run, for the reason above"
    fi
}

# Joined by &&: `set -e` is off inside a command whose failure is handled.
make_harness() {
    local python
    unset PYTHONPATH PYTHONHOME VIRTUAL_ENV
    python=$("$VENV/bin/python" -I -c 'import os, sys; print(os.path.realpath(sys._base_executable))') &&
        "$UV" venv --python "$python" "$1" && "$UV" pip install --python "$1/bin/python" -r "$2"
}
