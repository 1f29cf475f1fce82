# shellcheck shell=bash
# Staging: the Python environment on every node's own disk. Thousands of ranks that import from a shared file system ask
# its metadata server for millions of files at once. Sourced by jobs/lib.sh when PFFBENCH_STAGE=1.

# stage: pack every directory that Python imports from, broadcast the pack, unpack it once on each node, run from there.
# What is packed is the import path, not a prefix: so a layer over another environment, Spack and modules are all covered.
stage() {
    local begin=$SECONDS farm pack dir number=0 path='' compress='gzip -1'
    local target=$SITE_LOCAL/pffbench-$JOB
    if type -P zstd >/dev/null; then compress='zstd -1 -T0'; fi
    mkdir -p "$PACK_IN"
    farm=$(mktemp -d "$PACK_IN/pffbench-pack-XXXXXX")
    pack=$farm.tar
    while read -r dir; do
        ln -s "$dir" "$farm/$number"
        path+=${path:+:}$target/$number
        number=$((number + 1))
    done < <(import_path)
    tar --create --file "$pack" --use-compress-program "$compress" --directory "$farm" --dereference \
        --ignore-failed-read --exclude './*/site-packages' --exclude './*/dist-packages' .
    say "packed $number directories in $((SECONDS - begin)) s: $(stat -c %s "$pack") bytes"
    broadcast "$pack" "$target.tar"
    rm -r "$farm" "$pack"
    STAGED=$target
    on_each_node "mkdir -p '$target' && tar -x -f '$target.tar' -I '${compress%% *}' -C '$target' && rm '$target.tar'"
    # Without the site module only this path and the interpreter's own library are looked at.
    PYTHON=$("$PYTHON" -c 'import os, sys; print(os.path.realpath(sys.executable))')
    # shellcheck disable=SC2034  # used by jobs/lib.sh
    PYTHON_OPTIONS=(-S)
    export PYTHONPATH=$path
    say "the environment is on every node, in $target, after $((SECONDS - begin)) s"
}

# import_path: the directories, in order. The standard library in /usr is on every node already.
import_path() {
    "$PYTHON" - <<'PYTHON'
import os, sys, sysconfig
standard = {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}
standard |= {os.path.join(path, "lib-dynload") for path in standard}
for path in sys.path:
    if os.path.isdir(path) and not (path in standard and path.startswith("/usr/")):
        print(os.path.realpath(path))
PYTHON
}

unstage() { on_each_node "rm -rf '$STAGED' '$STAGED.tar'" || true; }
