/* Preloaded into a writer: counts syncs, and fails them while a file exists. A test of durability
   must see the syncs themselves: killing a process loses nothing even when they are turned off. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <fcntl.h>

static int note(void) {
    int fd = open(getenv("SYNC_LOG"), O_WRONLY | O_APPEND | O_CREAT, 0600);
    int failing = access(getenv("SYNC_FAIL"), F_OK) == 0;
    if (fd >= 0) { if (write(fd, failing ? "x" : ".", 1) < 0) abort(); close(fd); }
    return failing;
}

int fsync(int fd) {
    if (note()) { errno = EIO; return -1; }
    return (int) syscall(SYS_fsync, fd);
}

int fdatasync(int fd) {
    if (note()) { errno = EIO; return -1; }
    return (int) syscall(SYS_fdatasync, fd);
}
