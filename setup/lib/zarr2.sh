# shellcheck shell=bash
# A small environment with zarr-python 2, on request: .venv-zarr2, a layer over .venv.
#
# zarr-python 2 and 3 have one name, so no environment holds both. The layer holds version 2 and its codecs, which are found
# first; MPI, h5py, numpy and pffbench are those of .venv, proved there.

ZARR2_VENV=$ROOT/.venv-zarr2

# zarr2_up_to_date: asked when .venv is up to date. What .venv depends on includes this file and the lock.
zarr2_up_to_date() {
    [[ -x $ZARR2_VENV/bin/python && -s $BUILD/stamp && $(cat "$ZARR2_VENV/.stamp" 2>/dev/null) == "$(cat "$BUILD/stamp")" ]]
}

# need_zarr2: make the layer unless it is there; ends with one message where it cannot be had.
need_zarr2() {
    lock "$BUILD/lock"
    if ! zarr2_up_to_date; then make_zarr2; fi
    exec 9>&-
}

# Made anew whenever .venv was, which may have another Python by then.
make_zarr2() {
    local base=$VENV/bin/python stamp
    # What follows works on "the" virtual environment.
    local VENV=$ZARR2_VENV
    stamp=$(cut -c 1-12 "$BUILD/stamp")
    make_venv "over .venv, $stamp" layer_over "$base"
    need_uv "$(find_python && echo "$BASE_PYTHON" || echo "$base")"
    step zarr2 "adding zarr-python 2 to ${VENV#"$ROOT"/}" install_zarr2 ||
        die "zarr-python 2 cannot be had, for the reason above (its codecs have wheels for Python 3.11 to 3.13, this is
$("$base" -V)); all else works without it."
    cp "$BUILD/stamp" "$VENV/.stamp"
}

# Compressed, written and read back: with another numpy than it was made for, an import proves little.
install_zarr2() {
    "$UV" pip install --python "$VENV/bin/python" --no-deps --compile-bytecode --only-binary :all: -r "$SETUP/zarr2-requirements.lock" &&
        env -u PYTHONPATH -u PYTHONHOME "$VENV/bin/python" -c '
import mpi4py, numpy, pffbench, zarr
assert zarr.__version__.startswith("2."), zarr.__version__
values = numpy.arange(1000.0)
array = zarr.array(values, chunks=64)
assert numpy.array_equal(array[...], values) and array.nbytes_stored < values.nbytes'
}

# offer_zarr2: for the tests, which say what they miss where it cannot be had.
offer_zarr2() {
    (need_zarr2) || warn "the tests with zarr-python 2 do not run, for the reason above"
}
