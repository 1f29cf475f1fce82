/* Forced into the build of netCDF4-python (gcc -include) where the installed netCDF-C needs it; see netcdf_compat.
 *
 * netCDF4-python asks netcdf_meta.h what the library can do. Some releases of netCDF-C do not say it all:
 * 4.9.0 has the bzip2 and Blosc functions without the macros that announce them, and declares itself new enough
 * for nc_rc_get() and nc_rc_set() without exporting them. Each part here is switched on by a test that linked, or
 * failed to link, against the library at hand.
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
/* These set where remote (OPeNDAP) access finds certificates, which no benchmark touches. netCDF4-python calls the first
 * one when it is imported and takes anything but 0 for fatal. */
static inline int nc_rc_set(const char *key, const char *value) { (void)key; (void)value; return 0; }
static inline const char *nc_rc_get(const char *key) { (void)key; return NULL; }
#endif

#endif
