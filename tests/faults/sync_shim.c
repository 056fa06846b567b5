/* A disk that can be given orders: loaded into a daemon, it stands before fsync and fdatasync.
 *
 * The orders are 32-bit numbers in a file that both sides have mapped (sync_orders.py has the other side). What a sync
 * does is so decided at the moment of the sync, by whoever holds the orders, and what came of it is counted there. Only
 * a delay ends with its order: else a disk would still be slow after everybody was told that it is well.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct orders {
    int32_t delay_ms; /* each sync takes so much longer */
    int32_t fails;    /* syncs answer EIO, and nothing is synced */
    int32_t calls;    /* syncs that were asked for */
    int32_t delayed;  /* of these: were late */
    int32_t failed;   /* of these: were answered EIO */
};

#define SLICE_MS 10 /* a disk that is well again keeps nobody waiting any longer than this */

static volatile struct orders *orders;

__attribute__((constructor)) static void take_orders(void) {
    const char *path = getenv("GSF_SYNC_ORDERS");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *found = mmap(NULL, sizeof(struct orders), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    orders = found == MAP_FAILED ? NULL : found;
}

static int obey(long number, int fd) {
    if (orders != NULL) {
        __atomic_add_fetch(&orders->calls, 1, __ATOMIC_SEQ_CST);
        if (orders->delay_ms > 0) {
            const struct timespec pause = {0, SLICE_MS * 1000000L};
            __atomic_add_fetch(&orders->delayed, 1, __ATOMIC_SEQ_CST);
            for (int32_t left = orders->delay_ms; left > 0 && orders->delay_ms > 0; left -= SLICE_MS)
                nanosleep(&pause, NULL);
        }
        if (orders->fails) {
            __atomic_add_fetch(&orders->failed, 1, __ATOMIC_SEQ_CST);
            errno = EIO;
            return -1;
        }
    }
    return (int)syscall(number, fd);
}

int fsync(int fd) { return obey(SYS_fsync, fd); }

int fdatasync(int fd) { return obey(SYS_fdatasync, fd); }
