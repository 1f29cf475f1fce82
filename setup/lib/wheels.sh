# shellcheck shell=bash
# h5py and netCDF4 compiled against the parallel libraries, and mpi4py where its wheel cannot load this MPI, once per machine:
# the wheels are kept in the user's cache.

# pinned NAME: the line `name==version` of a package in requirements.lock.
pinned() { sed -nE "s/^($1==[^ ;]+).*/\1/Ip" "$(locks_of "$BASE_PYTHON")/requirements.lock"; }

# The wheels depend on how they are built, with which Python, and against which libraries - on the contents of these, so that
# a system update makes a new key. The caches of uv and pip know only name and version and would hand out a serial wheel.
wheels_key() {
    {
        cat "$SETUP/lib/wheels.sh" "$SETUP/netcdf_compat.h" "$SETUP/netcdf_compat" "$SETUP/mpi4py_compat.h" \
            "$(locks_of "$BASE_PYTHON")/build-requirements.lock"
        pinned h5py
        pinned netcdf4
        pinned mpi4py
        own_wheels
        echo "${CFLAGS:-} ${LDFLAGS:-}"
        "$BASE_PYTHON" -I -c 'import sys, sysconfig; print(sys.version, sysconfig.get_config_var("SOABI"))'
        echo "$NATIVE_HDF5_LIB $NATIVE_NETCDF_LIB"
        xargs -d '\n' sha256sum <<<"$NATIVE_LIBRARIES"
    } | sha256sum | cut -c 1-16
}

# own_wheels: the packages to compile here, one a line.
own_wheels() {
    if [[ -n $NATIVE_NETCDF_LIB ]]; then echo netcdf4; fi
    echo h5py
    if ! mpi4py_wheel_serves; then echo mpi4py; fi
}

# mpi4py_wheel_serves: does the wheel from the index load the MPI that the compiler links? It asks the loader for one of two
# names. Cray's MPI has neither, Debian's MPICH neither, and a name alone may be that of another MPI.
mpi4py_wheel_serves() {
    "$BASE_PYTHON" -I - "$NATIVE_MPI" <<'PYTHON'
import ctypes, os, sys
for name in ("libmpi.so.12", "libmpi.so.40"):
    try:
        ctypes.CDLL(name)
    except OSError:
        continue
with open("/proc/self/maps") as maps:
    loaded = {os.path.realpath(line.split(maxsplit=5)[5].rstrip()) for line in maps if "/libmpi.so" in line}
sys.exit(sys.argv[1] not in loaded)
PYTHON
}

cache_dir() {
    local dir=${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/pffbench
    if ! mkdir -p "$dir" 2>/dev/null || [[ ! -w $dir ]]; then dir=$BUILD/cache; fi
    echo "$dir"
}

# need_wheels: set WHEELS to the directory that holds these wheels, building those that the cache lacks for this key.
need_wheels() {
    local name job names work=$BUILD/wheels to_build=() jobs=() status=0
    WHEELS_KEY=$(wheels_key)
    WHEELS=$(cache_dir)/wheels/$WHEELS_KEY
    mkdir -p "$WHEELS"
    mapfile -t names < <(own_wheels)
    for name in "${names[@]}"; do
        compgen -G "$WHEELS/$name-*.whl" >/dev/null || to_build+=("$name")
    done
    if ((${#to_build[@]} == 0)); then
        say "${names[*]} come from wheels built earlier: $WHEELS"
        return 0
    fi
    rm -rf "$work"
    mkdir -p "$work"
    # nproc takes OMP_NUM_THREADS for the number of cores, and that of ranks is 1.
    printf '[build_ext]\nparallel = %s\n' "$(env -u OMP_NUM_THREADS nproc)" >"$work/build.cfg"
    step build-tools "installing the build tools (Cython, setuptools, numpy, …)" build_tools "$work" || exit
    # Side by side, since each spends most of its time in one process (Cython); each has its own log and its own report.
    for name in "${to_build[@]}"; do
        step "$name" "building $(pinned "$name" | sed 's/==/ /') with $NATIVE_MPICC, HDF5 $NATIVE_HDF5_VERSION" "build_$name" "$work" &
        jobs+=($!)
    done
    for job in "${jobs[@]}"; do wait "$job" || status=$?; done
    if ((status != 0)); then exit "$status"; fi
    rm -rf "$work"
}

# download_packages: fetch into DOWNLOAD the wheels that are locked for this Python and the sources of what is compiled here.
# pip asks the build scripts of these for their names, so the libraries must be there as on the other machine.
download_packages() {
    local name locks work=$BUILD/download
    mkdir -p "$DOWNLOAD"
    DOWNLOAD=$(cd "$DOWNLOAD" && pwd)
    lock "$BUILD/lock"
    unset PYTHONPATH PYTHONHOME
    find_base
    need_uv "$BASE_PYTHON"
    locks=$(locks_of "$BASE_PYTHON")
    rm -rf "$work"
    mkdir -p "$work"
    printf '[build_ext]\n' >"$work/build.cfg"
    step build-tools "installing the build tools (Cython, setuptools, numpy, …)" build_tools "$work" || exit
    grep -viE '^(h5py|netcdf4)==' "$locks/requirements.lock" >"$work/run.lock"
    for name in "$locks/build-requirements.lock" "$work/run.lock"; do
        step download "downloading what ${name##*/} names into $DOWNLOAD" "$BUILD/tools/bin/python" -m pip download \
            --disable-pip-version-check --no-deps --only-binary :all: --dest "$DOWNLOAD" -r "$name" || exit
    done
    for name in h5py netcdf4 mpi4py; do
        step download "downloading the sources of $name into $DOWNLOAD" "build_$name" "$work" || exit
    done
    rm -rf "$work"
    say "ready: copy $DOWNLOAD, and run there: setup/bootstrap --from DIR"
}

build_tools() {
    "$UV" venv --python "$BASE_PYTHON" "$1/venv" &&
        "$UV" pip install --python "$1/venv/bin/python" --no-deps -r "$(locks_of "$BASE_PYTHON")/build-requirements.lock"
}

# build_wheel WORK NAME: compile one package from its source release, with nothing taken from or left in a cache.
build_wheel() {
    local wheel
    # A rpath, because modules and hand-made installations are not on the loader's path. Giving any CFLAGS drops Python's own
    # -O2, and without optimisation netCDF4 does not even import.
    export CC=$NATIVE_MPICC MPICC=$NATIVE_MPICC
    # The three must agree on the handles of MPI that mpi4py hands over.
    export CFLAGS="-g0 ${CFLAGS:--O2} -include $SETUP/mpi4py_compat.h ${EXTRA_CFLAGS:-}"
    export LDFLAGS="${LDFLAGS:-} -Wl,-rpath,$NATIVE_HDF5_LIB ${NATIVE_NETCDF_LIB:+-Wl,-rpath,$NATIVE_NETCDF_LIB} -Wl,-rpath,${NATIVE_MPI%/*}"
    export PATH=$1/venv/bin:$PATH DIST_EXTRA_CONFIG=$1/build.cfg
    if [[ -n ${DOWNLOAD:-} ]]; then
        python -m pip download --disable-pip-version-check --no-deps --no-build-isolation --no-binary :all: --dest "$DOWNLOAD" "$(pinned "$2")"
        return
    fi
    python -m pip wheel --disable-pip-version-check --no-deps --no-build-isolation --no-binary :all: --no-cache-dir \
        --verbose --wheel-dir "$1/$2" "$(pinned "$2")" || return
    # By a rename, so that another checkout never sees half of it.
    for wheel in "$1/$2"/*.whl; do
        cp "$wheel" "$WHEELS/.${wheel##*/}.$$" && mv "$WHEELS/.${wheel##*/}.$$" "$WHEELS/${wheel##*/}"
    done
}

# These run as steps, whose exports end with them.
build_mpi4py() {
    # Cray's wrapper links programs unless told otherwise.
    if [[ ${NATIVE_MPICC##*/} == cc ]]; then export MPI4PY_BUILD_MPICC="$NATIVE_MPICC -shared"; fi
    build_wheel "$1" mpi4py
}

build_h5py() {
    # Modules set HDF5_DIR, and h5py takes only one of the two ways to name an HDF5.
    unset HDF5_DIR HDF5_PKGCONFIG_NAME
    export HDF5_MPI=ON H5PY_SETUP_REQUIRES=0
    export HDF5_INCLUDEDIR=$NATIVE_HDF5_INCLUDE HDF5_LIBDIR=$NATIVE_HDF5_LIB
    build_wheel "$1" h5py
}

build_netcdf4() {
    # Its own search would take the first nc-config or setup.cfg it meets.
    export USE_SETUPCFG=0 USE_NCCONFIG=0
    export HDF5_INCDIR=$NATIVE_HDF5_INCLUDE HDF5_LIBDIR=$NATIVE_HDF5_LIB
    export NETCDF4_INCDIR=$NATIVE_NETCDF_INCLUDE NETCDF4_LIBDIR=$NATIVE_NETCDF_LIB
    EXTRA_CFLAGS=$("$SETUP/netcdf_compat" "$NATIVE_MPICC" "$NATIVE_NETCDF_INCLUDE" "$NATIVE_NETCDF_LIB" \
        "$NATIVE_HDF5_INCLUDE")
    build_wheel "$1" netcdf4
}
