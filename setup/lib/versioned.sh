# shellcheck shell=bash
# versioned-hdf5, on request: compiled once per machine against the HDF5 that h5py uses, and kept in the user's cache.
#
# The wheels of the index hold code for the HDF5 in h5py's own wheel and cannot be imported beside a parallel h5py.

# versioned_hdf5_up_to_date: asked when .venv is up to date. What .venv depends on includes this file and the lock.
versioned_hdf5_up_to_date() {
    [[ -s $BUILD/stamp && $(cat "$VENV/.versioned-hdf5" 2>/dev/null) == "$(cat "$BUILD/stamp")" ]]
}

# need_versioned_hdf5: build it unless the cache has it, put it into .venv, and prove it there.
need_versioned_hdf5() {
    lock "$BUILD/lock"
    if versioned_hdf5_up_to_date; then return 0; fi
    local wheel
    find_hdf5_of_h5py || die "there are no headers of the HDF5 that h5py uses, which versioned-hdf5 is built with; name its prefix
with HDF5_DIR. All else works without it."
    need_uv "$(find_python && echo "$BASE_PYTHON" || echo "$VENV/bin/python")"
    find_versioned_hdf5_wheel || {
        versioned_hdf5_packages
        step versioned-hdf5 "building $(pinned_version versioned-hdf5) against HDF5 in $NATIVE_HDF5_LIB" build_versioned_hdf5 || exit
        find_versioned_hdf5_wheel
    }
    step versioned-install "adding versioned-hdf5 to ${VENV#"$ROOT"/}" install_versioned_hdf5 "$wheel" || exit
    cp "$BUILD/stamp" "$VENV/.versioned-hdf5"
    exec 9>&-
}

# pinned_version NAME: the line `name==version` of versions-requirements.lock.
pinned_version() { sed -nE "s/^($1==[^ ;]+).*/\1/p" "$(locks_of "$VENV/bin/python")/versions-requirements.lock"; }

# find_hdf5_of_h5py: set NATIVE_* to the HDF5 whose library h5py has loaded.
find_hdf5_of_h5py() {
    local loaded
    loaded=$("$VENV/bin/python" -c '
import h5py, os, re
for line in open("/proc/self/maps"):
    path = line.rstrip("\n").partition("/")[2]
    if re.match(r"libhdf5(?!\w*_(hl|cpp|fortran))[\w-]*\.so", path.rpartition("/")[2]):
        print(os.path.realpath("/" + path))
        break') || return 1
    find_native && [[ $(readlink -f "$NATIVE_HDF5_LIB/libhdf5.so") == "$loaded" ]]
}

# find_versioned_hdf5_wheel: set `wheel` to that of the cache for this Python and these libraries; status 1 without one.
find_versioned_hdf5_wheel() {
    local key found
    key=$({
        cat "$SETUP/lib/versioned.sh" "$(locks_of "$VENV/bin/python")/versions-requirements.lock"
        "$VENV/bin/python" -c 'import sys, h5py, numpy; print(sys.version, h5py.__version__, numpy.__version__)'
        sha256sum "$NATIVE_HDF5_LIB/libhdf5.so"
    } | sha256sum | cut -c 1-16)
    VERSIONED_WHEELS=$(cache_dir)/wheels/versioned-hdf5-$key
    found=("$VERSIONED_WHEELS"/versioned_hdf5-*.whl)
    [[ -e ${found[0]} ]] && wheel=${found[0]}
}

# versioned_hdf5_packages: the compiler and headers that its build needs, where they can be installed without asking.
versioned_hdf5_packages() {
    local names=()
    type -P c++ >/dev/null || names+=(g++)
    type -P pkg-config >/dev/null || names+=(pkgconf)
    [[ -e /usr/include/openssl/sha.h ]] || names+=(libssl-dev)
    offer "versioned-hdf5 may not compile" "${names[@]}"
}

# build_versioned_hdf5: compile it in an environment of its own; the wheel goes to the cache by a rename.
build_versioned_hdf5() {
    local work=$BUILD/versioned-hdf5 numpy include mpi built
    rm -rf "$work"
    mkdir -p "$work/pc" "$VERSIONED_WHEELS"
    numpy=$("$VENV/bin/python" -c 'import numpy; print(numpy.__version__)')
    "$UV" venv --python "$VENV/bin/python" "$work/venv" &&
        grep -v '^versioned-hdf5==' "$(locks_of "$VENV/bin/python")/versions-requirements.lock" >"$work/lock" &&
        "$UV" pip install --python "$work/venv/bin/python" --no-deps -r "$work/lock" "numpy==$numpy" pip || return
    # The headers of a parallel HDF5 include mpi.h; where that is, the MPI compiler knows.
    echo '#include <mpi.h>' >"$work/where.c"
    mpi=$("$NATIVE_MPICC" -E "$work/where.c" | sed -nE 's/^# [0-9]+ "(.*)\/mpi\.h".*/\1/p' | head -n 1)
    include="-I$NATIVE_HDF5_INCLUDE ${mpi:+-I$mpi}"
    printf '%s\n' "Name: hdf5" "Description: the HDF5 that h5py uses" "Version: $NATIVE_HDF5_VERSION" \
        "Cflags: $include" "Libs: -L$NATIVE_HDF5_LIB -Wl,-rpath,$NATIVE_HDF5_LIB -lhdf5" >"$work/pc/hdf5.pc"
    export PKG_CONFIG_PATH=$work/pc PATH=$work/venv/bin:$PATH
    python -m pip wheel --disable-pip-version-check --no-deps --no-build-isolation --no-binary :all: --no-cache-dir \
        --verbose --wheel-dir "$work/wheels" "$(pinned_version versioned-hdf5)" || return
    for built in "$work/wheels"/*.whl; do
        cp "$built" "$VERSIONED_WHEELS/.${built##*/}.$$" &&
            mv "$VERSIONED_WHEELS/.${built##*/}.$$" "$VERSIONED_WHEELS/${built##*/}" || return
    done
    rm -rf "$work"
}

# install_versioned_hdf5 WHEEL: with the one package that it needs beside those of .venv; versions written and read back prove it.
install_versioned_hdf5() {
    "$UV" pip install --python "$VENV/bin/python" --no-deps --compile-bytecode --reinstall "$1" "$(pinned_version ndindex)" &&
        env -u PYTHONPATH -u PYTHONHOME "$VENV/bin/python" -c '
import os, re, sys, h5py, numpy, versioned_hdf5
path = sys.argv[1]
with h5py.File(path, "w") as file:
    versions = versioned_hdf5.VersionedHDF5File(file)
    for name, value in (("one", 1.0), ("two", 2.0)):
        with versions.stage_version(name) as group:
            if name == "one":
                group.create_dataset("a", data=numpy.zeros(100), chunks=(10,), maxshape=(None,))
            group["a"][:50] = value
with h5py.File(path, "r") as file:
    assert [versioned_hdf5.VersionedHDF5File(file)[name]["a"][0] for name in ("one", "two")] == [1, 2]
loaded = set(re.findall(r"/\S*/libhdf5(?!\w*_hl)[\w-]*\.so\S*", open("/proc/self/maps").read()))
assert len({os.path.realpath(library) for library in loaded}) == 1, loaded
os.unlink(path)' "$BUILD/check/versioned.h5"
}
