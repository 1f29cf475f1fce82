/* Included in the build of netCDF4-python (gcc -include) if the installed netCDF-C needs it (see netcdf_compat).
 *
 * netCDF4-python reads the features of the library from netcdf_meta.h, which is incomplete in some releases of netCDF-C:
 * 4.9.0 has the bzip2 and Blosc functions without their macros, and its version promises nc_rc_get() and nc_rc_set(), which
 * it does not export. A program that linked, or failed to link, against the library switches on each part here.
 */
#ifndef PFFBENCH_NETCDF_COMPAT_H
#define PFFBENCH_NETCDF_COMPAT_H

#ifdef PFFBENCH_NC_BZIP2_UNANNOUNCED
#define NC_HAS_BZ2 1
#endif

#ifdef PFFBENCH_NC_BLOSC_UNANNOUNCED
#define NC_HAS_BLOSC 1
#endif

#ifdef PFFBENCH_NC_RC_MISSING
#include <stddef.h>
/* They set the certificates of remote (OPeNDAP) access, which no benchmark uses. netCDF4-python calls the first one when it is
 * imported and fails if the result is not 0. */
static inline int nc_rc_set(const char *key, const char *value) { (void)key; (void)value; return 0; }
static inline const char *nc_rc_get(const char *key) { (void)key; return NULL; }
#endif

#endif
