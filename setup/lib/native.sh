# shellcheck shell=bash
# Find the C side: an MPI compiler, a parallel HDF5 and a parallel netCDF-C that belong together. Where there is no netCDF-C
# the first two can do, and the backend netcdf4 is absent.
#
# The decision is made by looking at headers and by linking a program, never by the name of a distribution or a module,
# so that Debian's packages, a cluster's modules and hand-made installations take the same way.

# hdf5_candidates, netcdf_candidates: prefixes worth a look, the user's own words first.
hdf5_candidates() {
    local d tool
    for d in "${HDF5_DIR:-}" "${HDF5_ROOT:-}" "${HDF5_HOME:-}" "${HDF5_PREFIX:-}"; do [[ -z $d ]] || echo "$d"; done
    if tool=$(type -P h5pcc); then dirname "$(dirname "$tool")"; fi
    pkg_config_prefixes hdf5-openmpi hdf5-mpich hdf5
    # Debian keeps its flavours here; on several architectures, hence the pattern.
    for d in /usr/lib/*/hdf5/openmpi /usr/lib/*/hdf5/mpich /usr/local; do echo "$d"; done
}

netcdf_candidates() {
    local d
    for d in "${NETCDF4_DIR:-}" "${NETCDF_DIR:-}" "${NETCDF_C_HOME:-}" "${NETCDF_C_ROOT:-}" "${NETCDF_ROOT:-}" \
        "${NETCDF_HOME:-}"; do [[ -z $d ]] || echo "$d"; done
    if type -P nc-config >/dev/null; then nc-config --prefix; fi
    pkg_config_prefixes netcdf-pnetcdf netcdf-mpi netcdf
    for d in /usr/lib/*/netcdf/pnetcdf /usr/lib/*/netcdf/mpi /usr/local; do echo "$d"; done
}

pkg_config_prefixes() {
    local name
    type -P pkg-config >/dev/null || return 0
    for name in "$@"; do pkg-config --variable=prefix "$name" 2>/dev/null || true; done
}

# The compiler that the user names is the only one: another would bring another MPI than the one that was asked for.
mpicc_candidates() {
    local name
    if [[ -n ${MPICC:-} ]]; then
        type -P "${MPICC%% *}" || true # `cc -shared` is how some centres write it; the build adds -shared itself
        return 0
    fi
    # On a Cray `cc` is the wrapper of the loaded programming environment; an mpicc beside it is that of another MPI.
    if [[ -n ${CRAYPE_VERSION:-}${PE_ENV:-} ]]; then type -P cc || true; fi
    # Debian's netCDF belongs to Open MPI even where the alternative `mpicc` has been turned to MPICH.
    for name in mpicc mpicc.openmpi mpicc.mpich cc; do type -P "$name" || true; done
}

# include_with PREFIX HEADER-PATTERN MACRO: the include directory below a prefix if its header defines MACRO to 1.
include_with() {
    # shellcheck disable=SC2086  # the pattern is meant to be expanded (H5pubconf.h, H5pubconf-64.h)
    grep -qsE "^#define[[:space:]]+$3[[:space:]]+1" "$1/include"/$2 && echo "$1/include"
}

# library_dir PREFIX NAME: the directory below a prefix that holds libNAME.so.
library_dir() {
    local dir
    for dir in "$1/lib" "$1/lib64" "$1"/lib/*-linux-gnu "$1"; do
        if [[ -e $dir/lib$2.so ]]; then
            echo "$dir"
            return 0
        fi
    done
    return 1
}

# defining FUNCTION: of the libraries named on standard input those that define a function themselves. Names say little: Cray's
# MPI is libmpi_gnu_123.so.12, Debian's MPICH libmpich.so.12, and libmpi_mpifh.so.40 is Open MPI's second half, not a second MPI.
defining() {
    local file
    while read -r file; do
        nm -D --defined-only "$file" 2>/dev/null |
            awk -v name="$1" '{sub(/@.*/, "", $NF)} $NF == name {defined = 1} END {exit !defined}' && echo "$file"
    done
    return 0
}

# links_together: can the compiler link one program against all of them, and does the program load ONE MPI and ONE HDF5?
# Two of either in one process crash or, worse, write wrong bytes. A library that the loader does not find may be a second.
links_together() {
    local dir=$BUILD/probe loaded libraries
    local -a netcdf=()
    if [[ -n $NATIVE_NETCDF_LIB ]]; then
        netcdf=(-DWITH_NETCDF -I"$NATIVE_NETCDF_INCLUDE" -L"$NATIVE_NETCDF_LIB" "-Wl,-rpath,$NATIVE_NETCDF_LIB" -lnetcdf)
    fi
    mkdir -p "$dir"
    cat >"$dir/stack.c" <<'C'
#include <mpi.h>
#include <hdf5.h>
#ifdef WITH_NETCDF
#include <netcdf.h>
#include <netcdf_par.h>
#endif
int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    H5Pset_fapl_mpio(H5Pcreate(H5P_FILE_ACCESS), MPI_COMM_WORLD, MPI_INFO_NULL);
#ifdef WITH_NETCDF
    int ncid;
    nc_create_par("x", NC_NETCDF4, MPI_COMM_WORLD, MPI_INFO_NULL, &ncid);
#endif
    return MPI_Finalize();
}
C
    "$NATIVE_MPICC" -o "$dir/stack" "$dir/stack.c" -I"$NATIVE_HDF5_INCLUDE" "${netcdf[@]}" \
        -L"$NATIVE_HDF5_LIB" -Wl,-rpath,"$NATIVE_HDF5_LIB" -lhdf5 >"$dir/link.log" 2>&1 || return 1
    loaded=$(ldd "$dir/stack")
    if [[ $loaded == *' => not found'* ]]; then
        printf '%s\n' "a program linked by $NATIVE_MPICC does not start, since the loader does not find" \
            "$(awk '/ => not found/ {print $1}' <<<"$loaded" | sort -u)" \
            "in LD_LIBRARY_PATH (on a Cray it needs what is in CRAY_LD_LIBRARY_PATH)" >>"$dir/link.log"
        return 1
    fi
    # What ldd prints as `libX.so.N => /path (address)`, links resolved.
    libraries=$(awk '$2 == "=>" && $3 ~ /^\// {print $3}' <<<"$loaded" | xargs -r readlink -f | sort -u)
    NATIVE_MPI=$(defining MPI_Get_library_version <<<"$libraries")
    NATIVE_HDF5=$(defining H5open <<<"$libraries")
    NATIVE_LIBRARIES=$(printf '%s\n' "$NATIVE_MPI" "$NATIVE_HDF5" "$(defining nc_inq_libvers <<<"$libraries")")
    if [[ -z $NATIVE_MPI || -z $NATIVE_HDF5 || $NATIVE_MPI$NATIVE_HDF5 == *$'\n'* ]]; then
        printf '%s\n' "a program linked by $NATIVE_MPICC loads not one MPI and one HDF5 but:" "$NATIVE_LIBRARIES" >>"$dir/link.log"
        return 1
    fi
}

# find_native [without]: set NATIVE_* to the first combination that works, or to the first without netCDF-C; status 1 when there
# is none. NATIVE_NETCDF_LIB is empty without.
find_native() {
    local hdf5 netcdf
    rm -f "$BUILD/probe/link.log"
    for NATIVE_MPICC in $(mpicc_candidates); do
        for hdf5 in $(hdf5_candidates | awk '!seen[$0]++'); do
            NATIVE_HDF5_INCLUDE=$(include_with "$hdf5" 'H5pubconf*.h' H5_HAVE_PARALLEL) || continue
            NATIVE_HDF5_LIB=$(library_dir "$hdf5" hdf5) || continue
            for netcdf in $(if [[ ${1:-} == without ]]; then echo none; else netcdf_candidates | awk '!seen[$0]++'; fi); do
                NATIVE_NETCDF_INCLUDE='' NATIVE_NETCDF_LIB='' NATIVE_NETCDF_VERSION=''
                if [[ $netcdf != none ]]; then
                    NATIVE_NETCDF_INCLUDE=$(include_with "$netcdf" netcdf_meta.h NC_HAS_PARALLEL4) || continue
                    NATIVE_NETCDF_LIB=$(library_dir "$netcdf" netcdf) || continue
                    NATIVE_NETCDF_VERSION=$(sed -nE 's/^#define[[:space:]]+NC_VERSION[[:space:]]+"([^"]*)".*/\1/p' \
                        "$NATIVE_NETCDF_INCLUDE/netcdf_meta.h")
                fi
                if links_together; then
                    NATIVE_HDF5_VERSION=$(sed -nE 's/^#define[[:space:]]+H5_VERSION[[:space:]]+"(.*)"/\1/p' \
                        "$NATIVE_HDF5_INCLUDE"/H5pubconf*.h | head -n 1)
                    find_mpiexec
                    return 0
                fi
            done
        done
    done
    return 1
}

# native_report: which of the three are there, and where those that are not were looked for.
native_report() {
    local compilers
    compilers=$(mpicc_candidates | sort -u | paste -sd ' ')
    if [[ -n $compilers ]]; then
        echo "MPI: compiled with $compilers"
    else
        echo "MPI: missing; looked in PATH for ${MPICC:-mpicc, mpicc.openmpi, mpicc.mpich and cc}"
    fi
    library_report "parallel HDF5" hdf5 'H5pubconf*.h' H5_HAVE_PARALLEL HDF5_DIR < <(hdf5_candidates)
    library_report "parallel netCDF-C" netcdf netcdf_meta.h NC_HAS_PARALLEL4 NETCDF4_DIR < <(netcdf_candidates)
    if [[ -s $BUILD/probe/link.log ]]; then
        printf '%s\n' "They do not go together ($BUILD/probe/link.log):" "$(tail -n 5 "$BUILD/probe/link.log" | sed 's/^/    /')"
    fi
}

# library_report LABEL NAME HEADER MACRO VARIABLE: the same of one library, whose candidates are on standard input.
library_report() {
    local prefix
    local -a places
    mapfile -t places < <(awk 'NF && !seen[$0]++')
    for prefix in "${places[@]}"; do
        if include_with "$prefix" "$3" "$4" >/dev/null && library_dir "$prefix" "$2" >/dev/null; then
            echo "$1: $prefix"
            return
        fi
    done
    echo "$1: missing; looked for include/$3 with $4 and for lib$2.so below ${places[*]}; $5 names another directory"
}

# The launcher that belongs to the compiler: `mpicc.openmpi` goes with `mpiexec.openmpi`.
find_mpiexec() {
    local dir suffix name
    dir=$(dirname "$NATIVE_MPICC")
    suffix=${NATIVE_MPICC##*/}
    suffix=${suffix#mpicc}
    NATIVE_MPIEXEC=
    for name in "$dir/mpiexec$suffix" "$dir/mpirun$suffix"; do
        if [[ -x $name ]]; then
            NATIVE_MPIEXEC=$name
            return 0
        fi
    done
    NATIVE_MPIEXEC=$(type -P mpiexec || type -P mpirun || type -P srun || true)
}
