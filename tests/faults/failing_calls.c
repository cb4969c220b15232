/* Preloaded into a process: the N-th call of one kind that concerns a file below a folder fails once. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

enum { OPEN, WRITE, RENAME, SYNC, TRUNCATE };

static char folder[PATH_MAX];
static int armed = -1, failure, has_failed;
static long left, seen;

void arm(const char *below, int kind, long number, int error) {
    strncpy(folder, below, sizeof folder - 1);
    left = number, failure = error, has_failed = 0, seen = 0, armed = kind;
}

long disarm(void) {
    armed = -1;
    return has_failed ? -1 : seen;
}

static int concerns(const char *path) {
    char whole[PATH_MAX], up[PATH_MAX];
    if (path == NULL) return 0;
    if (path[0] == '/') return strncmp(path, folder, strlen(folder)) == 0;
    if (getcwd(up, sizeof up) == NULL) return 0;
    snprintf(whole, sizeof whole, "%s/%s", up, path);
    return strncmp(whole, folder, strlen(folder)) == 0;
}

static int fails(int kind, const char *path) {
    if (armed != kind || !concerns(path)) return 0;
    seen++;
    if (left-- != 0) return 0;
    has_failed = 1;
    errno = failure;
    return 1;
}

static int fails_for(int kind, int handle) {
    char link[64], path[PATH_MAX];
    ssize_t length;
    if (armed != kind) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", handle);
    length = readlink(link, path, sizeof path - 1);
    if (length < 0 || path[0] != '/') return 0; /* a pipe */
    path[length] = 0;
    return fails(kind, path);
}

#define NEXT(type, name, ...) ((type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name))
#define MODE                                            \
    mode_t mode = 0;                                    \
    if (flags & (O_CREAT | __O_TMPFILE)) {              \
        va_list more;                                   \
        va_start(more, flags);                          \
        mode = va_arg(more, mode_t);                    \
        va_end(more);                                   \
    }

int open(const char *path, int flags, ...) {
    MODE
    return fails(OPEN, path) ? -1 : NEXT(int, open, const char *, int, mode_t)(path, flags, mode);
}
int open64(const char *path, int flags, ...) {
    MODE
    return fails(OPEN, path) ? -1 : NEXT(int, open64, const char *, int, mode_t)(path, flags, mode);
}
ssize_t write(int handle, const void *data, size_t size) {
    return fails_for(WRITE, handle) ? -1 : NEXT(ssize_t, write, int, const void *, size_t)(handle, data, size);
}
ssize_t pwrite(int handle, const void *data, size_t size, off_t at) {
    return fails_for(WRITE, handle) ? -1 : NEXT(ssize_t, pwrite, int, const void *, size_t, off_t)(handle, data, size, at);
}
ssize_t pwrite64(int handle, const void *data, size_t size, off64_t at) {
    return fails_for(WRITE, handle) ? -1
                                    : NEXT(ssize_t, pwrite64, int, const void *, size_t, off64_t)(handle, data, size, at);
}
int rename(const char *from, const char *to) {
    return fails(RENAME, from) ? -1 : NEXT(int, rename, const char *, const char *)(from, to);
}
int fsync(int handle) {
    return fails_for(SYNC, handle) ? -1 : NEXT(int, fsync, int)(handle);
}
int fdatasync(int handle) {
    return fails_for(SYNC, handle) ? -1 : NEXT(int, fdatasync, int)(handle);
}
int ftruncate(int handle, off_t size) {
    return fails_for(TRUNCATE, handle) ? -1 : NEXT(int, ftruncate, int, off_t)(handle, size);
}
int ftruncate64(int handle, off64_t size) {
    return fails_for(TRUNCATE, handle) ? -1 : NEXT(int, ftruncate64, int, off64_t)(handle, size);
}
