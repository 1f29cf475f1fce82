/* Preloaded: H5Dcreate2 takes DELAY_NS nanoseconds of processor time longer, in any libhdf5 of the process. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef int64_t (*create_t)(int64_t, const char *, int64_t, int64_t, int64_t, int64_t, int64_t);

/* The library of an extension module is in no global scope, where RTLD_NEXT would look. */
static int visit(struct dl_phdr_info *info, size_t size, void *found)
{
    const char *base = strrchr(info->dlpi_name, '/');
    void *handle;
    (void)size;
    if (base == NULL || strncmp(base, "/libhdf5", 8) != 0 || strstr(base, "_hl") != NULL)
        return 0;
    handle = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
    *(void **)found = handle == NULL ? NULL : dlsym(handle, "H5Dcreate2");
    return *(void **)found != NULL;
}

int64_t H5Dcreate2(int64_t loc, const char *name, int64_t type, int64_t space, int64_t lcpl, int64_t dcpl, int64_t dapl)
{
    static create_t next = NULL;
    static long delay = -1;
    struct timespec begin, now;
    if (next == NULL) {
        const char *text = getenv("DELAY_NS");
        delay = text == NULL ? 0 : atol(text);
        dl_iterate_phdr(visit, &next);
        if (next == NULL)
            abort();
    }
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - begin.tv_sec) * 1000000000L + now.tv_nsec - begin.tv_nsec < delay);
    return next(loc, name, type, space, lcpl, dcpl, dapl);
}
