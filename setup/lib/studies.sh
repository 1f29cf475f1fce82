# shellcheck shell=bash
# What single studies need beside the environment, brought by `make study`: h5repack, versioned-hdf5, zarr-python 2.
#
# A study runs without them too and leaves out the cases that need them, so none of this ends the set-up: what cannot be had
# is named in a warning.

# study_ready NAME: whether all that this study needs is there.
study_ready() {
    if needs_h5repack "$1" && ! type -P h5repack >/dev/null; then return 1; fi
    if needs_versioned_hdf5 "$1" && ! versioned_hdf5_up_to_date; then return 1; fi
    if needs_zarr2 "$1" && ! zarr2_up_to_date; then return 1; fi
}

needs_h5repack() { [[ $1 == hdf5-compression-tuning* ]]; }
needs_versioned_hdf5() { [[ $1 == versioned-hdf5* ]]; }
needs_zarr2() { [[ ${ZARR2:-} != 0 && -f $ROOT/configs/studies/zarr2/$1.yaml ]]; }

# prepare_study NAME: bring what is missing; never fails.
prepare_study() {
    if needs_h5repack "$1" && ! type -P h5repack >/dev/null; then
        offer "what is rewritten with h5repack is left out" hdf5-tools
    fi
    if needs_versioned_hdf5 "$1" && ! versioned_hdf5_up_to_date; then
        (need_versioned_hdf5) || warn "what is kept with versioned-hdf5 is left out, for the reason above"
    fi
    if needs_zarr2 "$1"; then
        (need_zarr2) || warn "the step with zarr-python 2 is left out, for the reason above"
    fi
}
