/* Included in the compilation of mpi4py and of packages that use its communicators, for MPICH 4.0.
 *
 * mpi4py 4 makes datatypes with the large-count functions of MPI 4 if mpi.h declares MPI 4. ROMIO of MPICH 4.0 cannot decode
 * such datatypes: setting a view of a file ends the program ("Out of memory in file adio/common/flatten.c", pmodels/mpich
 * issue 6121, fixed in 4.1). Compiled as for MPI 3.1, mpi4py uses the functions that work.
 */
#include <mpi.h>
#if defined(MPICH_NUMVERSION) && MPICH_NUMVERSION >= 40000000 && MPICH_NUMVERSION < 40100000
#undef MPI_VERSION
#undef MPI_SUBVERSION
#define MPI_VERSION 3
#define MPI_SUBVERSION 1
#endif
