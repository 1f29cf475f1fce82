/* Forced into the compilation of mpi4py, and of what takes its communicators; for MPICH 4.0.
 *
 * mpi4py 4 makes datatypes with the functions of MPI 4 for large counts wherever mpi.h says MPI 4. ROMIO of MPICH 4.0 cannot
 * take such datatypes apart: setting a view of a file ends the program ("Out of memory in file adio/common/flatten.c",
 * pmodels/mpich issue 6121, mended in 4.1). Compiled as for MPI 3.1, mpi4py takes the functions that work.
 */
#include <mpi.h>
#if defined(MPICH_NUMVERSION) && MPICH_NUMVERSION >= 40000000 && MPICH_NUMVERSION < 40100000
#undef MPI_VERSION
#undef MPI_SUBVERSION
#define MPI_VERSION 3
#define MPI_SUBVERSION 1
#endif
