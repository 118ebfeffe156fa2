/* Moves the time of day of one process by the seconds that stand in the file CLOCK_SHIM, as if somebody had set the
   clock of the host. Everything that only counts up goes on as it was. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *offset;

__attribute__((constructor)) static void map(void) {
    const char *path = getenv("CLOCK_SHIM");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *page = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *offset, PROT_READ, MAP_SHARED, fd, 0);
    offset = page == MAP_FAILED ? NULL : page;
    if (fd >= 0)
        close(fd);
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    int result = (int)syscall(SYS_clock_gettime, clock, time);
    if (result == 0 && clock == CLOCK_REALTIME && offset)
        time->tv_sec += *offset;
    return result;
}
