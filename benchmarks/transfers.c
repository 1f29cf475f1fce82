/* The loops of pffbench in C: a block of memory written in transfers and read back, by POSIX or HDF5.
 *
 *     transfers posix|hdf5 FILE BLOCK TRANSFER REPETITIONS own|one
 *
 * `own`: each transfer has memory of its own, as in pffbench, which keeps all to verify it. `one`: all
 * go through the same memory, as in IOR. As in pffbench, all selections are made before, the dataset is
 * contiguous and has no fill values, and only the loop is timed. Prints for each repetition the seconds
 * of writing and of reading. Compiled by c_loops.py.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

typedef struct {
    size_t count, size, step; /* transfers, bytes of each, bytes between their memory */
    char *out, *in;           /* what is written, what is read into */
} Block;

static void check(int good, const char *what)
{
    if (!good) {
        perror(what);
        exit(1);
    }
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

/* Memory that is there and begins at a page, in huge pages where numpy has them too. */
static char *memory(size_t bytes, int content)
{
    char *found = aligned_alloc(2 << 20, (bytes + (2 << 20) - 1) / (2 << 20) * (2 << 20));
    check(found != NULL, "memory");
    madvise(found, bytes, MADV_HUGEPAGE);
    memset(found, content, bytes);
    return found;
}

static void by_posix(const char *path, Block b, double *wrote, double *read)
{
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    check(file >= 0, path);
    double begin = now();
    for (size_t i = 0; i < b.count; i++)
        check(pwrite(file, b.out + i * b.step, b.size, i * b.size) == (ssize_t)b.size, "pwrite");
    *wrote = now() - begin;
    begin = now();
    for (size_t i = 0; i < b.count; i++)
        check(pread(file, b.in + i * b.step, b.size, i * b.size) == (ssize_t)b.size, "pread");
    *read = now() - begin;
    close(file);
}

static void by_hdf5(const char *path, Block b, double *wrote, double *read)
{
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t plan = H5Pcreate(H5P_DATASET_CREATE);
    hsize_t shape[2] = {b.count, b.size / 4}, row[2] = {1, b.size / 4};
    hid_t whole = H5Screate_simple(2, shape, NULL), part = H5Screate_simple(2, row, NULL);
    H5Pset_fill_time(plan, H5D_FILL_TIME_NEVER);
    hid_t set = H5Dcreate2(file, "data", H5T_IEEE_F32LE, whole, H5P_DEFAULT, plan, H5P_DEFAULT);
    check(set >= 0, "H5Dcreate2");
    hid_t *rows = malloc(b.count * sizeof *rows);
    for (size_t i = 0; i < b.count; i++) {
        hsize_t begin[2] = {i, 0};
        rows[i] = H5Dget_space(set);
        H5Sselect_hyperslab(rows[i], H5S_SELECT_SET, begin, NULL, row, NULL);
    }
    double begin = now();
    for (size_t i = 0; i < b.count; i++)
        check(H5Dwrite(set, H5T_NATIVE_FLOAT, part, rows[i], H5P_DEFAULT, b.out + i * b.step) >= 0, "H5Dwrite");
    *wrote = now() - begin;
    begin = now();
    for (size_t i = 0; i < b.count; i++)
        check(H5Dread(set, H5T_NATIVE_FLOAT, part, rows[i], H5P_DEFAULT, b.in + i * b.step) >= 0, "H5Dread");
    *read = now() - begin;
    for (size_t i = 0; i < b.count; i++)
        H5Sclose(rows[i]);
    free(rows);
    H5Dclose(set), H5Sclose(part), H5Sclose(whole), H5Pclose(plan), H5Fclose(file);
}

int main(int argc, char **argv)
{
    if (argc != 7) {
        fprintf(stderr, "usage: transfers posix|hdf5 FILE BLOCK TRANSFER REPETITIONS own|one\n");
        return 2;
    }
    size_t block = strtoull(argv[3], NULL, 10), size = strtoull(argv[4], NULL, 10);
    int own = strcmp(argv[6], "own") == 0, hdf5 = strcmp(argv[1], "hdf5") == 0;
    Block b = {block / size, size, own ? size : 0, memory(own ? block : size, 1), NULL};
    b.in = own ? memory(block, 2) : b.out;
    for (int i = atoi(argv[5]); i > 0; i--) {
        double wrote, read;
        memset(b.in, own ? 2 : 1, own ? block : size);
        (hdf5 ? by_hdf5 : by_posix)(argv[2], b, &wrote, &read);
        check(memcmp(b.out, b.in, own ? block : size) == 0, "what was read is not what was written");
        printf("%.9f %.9f\n", wrote, read);
        unlink(argv[2]);
    }
    return 0;
}
