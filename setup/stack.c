/* setup/bootstrap links this program to check that an MPI, an HDF5 and a netCDF-C work together. It is never run. */
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
