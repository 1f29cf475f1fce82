"""MPI-parallel benchmark of HDF5, netCDF4 and Zarr for large arrays."""

__version__ = "0.1.0"
