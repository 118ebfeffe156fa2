// The job of the latency benchmark: writes the time of its first instruction to the file argv[1].
// Linked statically, so that nothing of note happens before main.
#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv) {
    struct timespec t;
    char text[32];
    clock_gettime(CLOCK_REALTIME, &t);
    int length = snprintf(text, sizeof text, "%lld\n", t.tv_sec * 1000000000LL + t.tv_nsec);
    int file = argc > 1 ? open(argv[1], O_WRONLY | O_CREAT | O_TRUNC, 0644) : 1;
    return write(file, text, length) != length;
}
