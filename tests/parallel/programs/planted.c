/* Faults below every library: a preloaded library that makes system calls on chosen files slow, or
 * lets reads return without having read. See tests/planted.py.
 *
 * PLANT_MATCH    part of the path of the files
 * PLANT_RANK     the only rank that is touched; all when not set
 * PLANT_SIZE     calls that move fewer bytes are left alone
 * PLANT_AFTER    so many reads go well before
 * PLANT_UNTIL    reads after so many go well again
 * PLANT_READ     "suppress": reads claim success and move nothing; "flip": one byte is changed;
 *                "neighbour": reads get the bytes before those asked for
 * PLANT_FAIL     the number of an error that writes and syncs return; PLANT_WELL of them go well before
 * PLANT_FACTOR   calls take so many times as long
 * PLANT_FACTOR_OF  "write" (default): write and fsync; "read"; "all"
 * PLANT_SECONDS  calls take so many seconds longer
 * PLANT_READERS  a file that gets a line for each read: the rank and the path
 * PLANT_WARM     before the first read of a file another process reads it from end to end
 *
 * The variables are read once, before main: MPI changes the environment while its threads read, and
 * a getenv(3) in them may then crash.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *match, *rank, *own, *well, *factor, *factor_of, *seconds, *readers, *read_fault, *after, *until;
static const char *failure, *warmed;
static size_t smallest;

__attribute__((constructor)) static void read_variables(void) {
    const char *size = getenv("PLANT_SIZE");
    own = getenv("OMPI_COMM_WORLD_RANK");
    if (!own) own = getenv("PMI_RANK"); /* of MPICH */
    match = getenv("PLANT_MATCH"), rank = getenv("PLANT_RANK"), smallest = size ? atol(size) : 0;
    factor = getenv("PLANT_FACTOR"), factor_of = getenv("PLANT_FACTOR_OF"), seconds = getenv("PLANT_SECONDS");
    read_fault = getenv("PLANT_READ"), after = getenv("PLANT_AFTER"), until = getenv("PLANT_UNTIL");
    failure = getenv("PLANT_FAIL"), well = getenv("PLANT_WELL");
    readers = getenv("PLANT_READERS"), warmed = getenv("PLANT_WARM");
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static void wait_for(double seconds) {
    double end = now() + seconds;
    if (seconds > 2e-3) usleep((useconds_t)((seconds - 1e-3) * 1e6));
    while (now() < end) {}
}

static int chosen(int fd, size_t size) {
    if (!match || size < smallest || (rank && own && strcmp(rank, own))) return 0;
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0) return 0;
    path[length] = 0;
    return strstr(path, match) != NULL;
}

static void note_reader(int fd) {
    char link[64], path[4096], line[4200];
    if (!readers) return;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    path[length < 0 ? 0 : length] = 0;
    length = snprintf(line, sizeof line, "%s %s\n", own ? own : "0", path);
    int log = (int)syscall(SYS_openat, AT_FDCWD, readers, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (log >= 0 && syscall(SYS_write, log, line, length)) syscall(SYS_close, log);
}

static int concerns(const char *kind) {
    return factor_of ? !strcmp(factor_of, "all") || !strcmp(factor_of, kind) : !strcmp(kind, "write");
}

static void slow_down(double begin, const char *kind) {
    int error = errno;
    if (!concerns(kind)) return;
    if (factor) wait_for((atof(factor) - 1) * (now() - begin));
    if (seconds) wait_for(atof(seconds));
    errno = error;
}

#define REAL(name) \
    static __typeof__(name) *real; \
    if (!real) real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

/* Read a file in a process that is nobody's child any more: what a child has read is added to what
 * its parent has when that waits for it. */
static void warm(int fd) {
    static ino_t known;
    static struct timespec changed; /* a file system gives the inode of a deleted file again */
    struct stat64 status;
    if (!warmed || fstat64(fd, &status)) return;
    if (status.st_ino == known && status.st_mtim.tv_sec == changed.tv_sec
        && status.st_mtim.tv_nsec == changed.tv_nsec) return;
    known = status.st_ino, changed = status.st_mtim;
    char link[64], path[4096], data[65536];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    int ends[2];
    if (length <= 0 || pipe(ends)) return;
    path[length] = 0;
    pid_t child = fork();
    if (!child) {
        if (fork()) _exit(0);
        close(ends[0]);
        int other = open(path, O_RDONLY);
        while (syscall(SYS_read, other, data, sizeof data) > 0) {}
        _exit(0);
    }
    close(ends[1]);
    waitpid(child, NULL, 0);
    while (syscall(SYS_read, ends[0], data, 1) > 0) {}
    close(ends[0]);
}

static int planted(const char *fault) {
    static long before;
    if (!read_fault || strcmp(read_fault, fault)) return 0;
    ++before;
    return (!after || before > atol(after)) && (!until || before <= atol(until));
}

/* How many bytes a read would have moved: no more than the file has from there on. */
static ssize_t claimed(int fd, size_t size, off64_t at) {
    struct stat64 status;
    int moving = at < 0;
    if (moving) at = lseek64(fd, 0, SEEK_CUR);
    if (fstat64(fd, &status) || at < 0) return -1;
    off64_t left = status.st_size > at ? status.st_size - at : 0;
    ssize_t moved = (off64_t)size < left ? (ssize_t)size : (ssize_t)left;
    if (moving) lseek64(fd, moved, SEEK_CUR);
    return moved;
}

/* Replace what was read by as many bytes that lie before them in the file. */
static void before_it(int fd, void *data, ssize_t size, off64_t at) {
    if (at < 0) at = lseek64(fd, 0, SEEK_CUR) - size;
    syscall(SYS_pread64, fd, data, size, at - size);
}

#define READ(name, at, declared, called) \
    ssize_t name declared { \
        REAL(name); \
        if (!chosen(fd, size)) return real called; \
        if (planted("suppress")) return claimed(fd, size, at); \
        warm(fd); \
        note_reader(fd); \
        double begin = now(); \
        ssize_t done = real called; \
        if (done > 0 && planted("flip")) ((char *)data)[done / 2] ^= 1; \
        if (done > 0 && planted("neighbour")) before_it(fd, data, done, at); \
        slow_down(begin, "read"); \
        return done; \
    }
READ(read, -1, (int fd, void *data, size_t size), (fd, data, size))
READ(pread, at, (int fd, void *data, size_t size, off_t at), (fd, data, size, at))
READ(pread64, at, (int fd, void *data, size_t size, off64_t at), (fd, data, size, at))

static size_t total(const struct iovec *parts, int count) {
    size_t size = 0;
    for (int i = 0; i < count; i++) size += parts[i].iov_len;
    return size;
}

#define READV(name, at, declared, called) \
    ssize_t name declared { \
        REAL(name); \
        size_t size = total(parts, count); \
        if (!chosen(fd, size)) return real called; \
        if (planted("suppress")) return claimed(fd, size, at); \
        warm(fd); \
        note_reader(fd); \
        double begin = now(); \
        ssize_t done = real called; \
        if (done > 0 && planted("flip")) ((char *)parts[0].iov_base)[0] ^= 1; \
        if (done > 0 && planted("neighbour")) before_it(fd, parts[0].iov_base, done, at); \
        slow_down(begin, "read"); \
        return done; \
    }
READV(readv, -1, (int fd, const struct iovec *parts, int count), (fd, parts, count))
READV(preadv, at, (int fd, const struct iovec *parts, int count, off_t at), (fd, parts, count, at))
READV(preadv64, at, (int fd, const struct iovec *parts, int count, off64_t at), (fd, parts, count, at))
READV(preadv2, at, (int fd, const struct iovec *parts, int count, off_t at, int flags), (fd, parts, count, at, flags))
READV(preadv64v2, at, (int fd, const struct iovec *parts, int count, off64_t at, int flags), (fd, parts, count, at, flags))

/* Whether a write or a sync fails, with its error. */
static int failing(void) {
    static long before;
    if (!failure || before++ < (well ? atol(well) : 0)) return 0;
    errno = atoi(failure);
    return 1;
}

#define WRITE(name, size_of, declared, called) \
    ssize_t name declared { \
        REAL(name); \
        if (!chosen(fd, size_of)) return real called; \
        if (failing()) return -1; \
        double begin = now(); \
        ssize_t done = real called; \
        slow_down(begin, "write"); \
        return done; \
    }
WRITE(write, size, (int fd, const void *data, size_t size), (fd, data, size))
WRITE(pwrite, size, (int fd, const void *data, size_t size, off_t at), (fd, data, size, at))
WRITE(pwrite64, size, (int fd, const void *data, size_t size, off64_t at), (fd, data, size, at))
WRITE(writev, total(parts, count), (int fd, const struct iovec *parts, int count), (fd, parts, count))
WRITE(pwritev, total(parts, count), (int fd, const struct iovec *parts, int count, off_t at), (fd, parts, count, at))
WRITE(pwritev64, total(parts, count), (int fd, const struct iovec *parts, int count, off64_t at), (fd, parts, count, at))
WRITE(pwritev2, total(parts, count), (int fd, const struct iovec *parts, int count, off_t at, int flags), (fd, parts, count, at, flags))
WRITE(pwritev64v2, total(parts, count), (int fd, const struct iovec *parts, int count, off64_t at, int flags), (fd, parts, count, at, flags))

#define SYNC(name) \
    int name(int fd) { \
        REAL(name); \
        if (!chosen(fd, (size_t)-1 >> 1)) return real(fd); \
        if (failing()) return -1; \
        double begin = now(); \
        int status = real(fd); \
        slow_down(begin, "write"); \
        return status; \
    }
SYNC(fsync)
SYNC(fdatasync)
