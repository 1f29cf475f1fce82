# shellcheck shell=bash
# Does the stack work? Two ranks write and read shared files; where no program of MPI may start, the first job does that.

# check_stack PYTHON LOG: run the proof on two ranks. The time limit is there because wrong pairs of MPI libraries hang.
# Where MPI may not start, everything else is looked at, and UNPROVEN says that the proof is still to come.
check_stack() {
    local status=0
    local -a without=()
    UNPROVEN=
    if [[ -e $BUILD/without-netcdf ]]; then without=(--no-netcdf); fi
    mkdir -p "$BUILD/check"
    if [[ $AT_LOGIN == no ]]; then
        if [[ -z $NATIVE_MPIEXEC ]]; then
            echo "the launcher (mpiexec, mpirun or srun) is not in PATH" >"$2"
            return 1
        fi
        timeout 120 "$NATIVE_MPIEXEC" -n 2 "$1" "$SETUP/check_stack.py" "${without[@]}" --dir "$BUILD/check" --watch "$BUILD/watch" \
            >"$2" 2>&1 </dev/null || status=$?
        if ((status == 124)); then echo "timeout: the check did not end within 120 s" >>"$2"; fi
        if ((status == 0)) || ! launcher_refuses "$2"; then return "$status"; fi
        say "no MPI program may start here, as on a login node: $(head -n 1 "$2")"
    fi
    timeout 120 "$1" "$SETUP/check_stack.py" "${without[@]}" --no-mpi --watch "$BUILD/watch" >"$2" 2>&1 </dev/null || return
    UNPROVEN=yes
}

# launcher_refuses LOG: did a batch system refuse to start anything, so that all that was said is what it says itself? A line
# about a task is of a program that did start.
launcher_refuses() {
    [[ -z ${SLURM_JOB_ID:-} && -s $1 ]] && ! grep -qvE '^(srun|salloc): ' "$1" && ! grep -qE ': tasks? [0-9]' "$1"
}

prove() {
    local log=$BUILD/logs/check.log
    mkdir -p "$BUILD/logs"
    say "checking: parallel libraries, one HDF5, real parallel writes and reads on 2 ranks"
    if ! check_stack "$VENV/bin/python" "$log"; then
        die "the environment was made but does not work:
$(problem_lines "$log" | sed 's/^/    /')
The whole log: $log
On a login node where no MPI program may start: setup/bootstrap --login leaves the proof to the first job."
    fi
    say "$(grep -m 1 '^h5py ' "$log")"
    if [[ -n $UNPROVEN ]]; then
        touch "$BUILD/unproven"
        say "no two ranks have written a file yet: the first job of jobs/submit does that before it measures"
    else
        rm -f "$BUILD/unproven"
    fi
}

# problem_lines LOG: what a person wants to read of it: the check's own lines, not the launcher's frames around them.
problem_lines() {
    grep -E '^(mpi4py|numpy|h5py|netCDF4|netcdf4|zarr|the launcher|timeout|[0-9]+ different)' "$1" | sort -u | head -n 10 ||
        tail -n 5 "$1"
}
