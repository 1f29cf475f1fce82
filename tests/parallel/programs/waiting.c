/* A preloaded library by which a rank that waits sleeps, in place of yielding its core for an instant.
 *
 * Open MPI calls sched_yield over and over where a rank waits for others (mpi_yield_when_idle). With
 * more ranks than cores those that wait take the cores from those that work. See tests/launch.py.
 *
 * WAIT_SECONDS   how long it sleeps; 0.0002 when not set
 */
#include <stdlib.h>
#include <time.h>

static double seconds = 2e-4;

/* Before main: a getenv(3) in a thread may crash while MPI changes the environment. */
__attribute__((constructor)) static void read_variable(void) {
    const char *text = getenv("WAIT_SECONDS");
    if (text) seconds = atof(text);
}

int sched_yield(void) {
    struct timespec t = {0, (long)(seconds * 1e9)};
    nanosleep(&t, NULL); /* a signal may end it; sched_yield has no such error */
    return 0;
}
