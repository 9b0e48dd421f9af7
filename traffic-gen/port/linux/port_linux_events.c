/* SPDX-License-Identifier: Apache-2.0 */
/* Port layer for Linux: libbwevents, what a program that records needs. */
#define _GNU_SOURCE
#include "port/port_events.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "events/bwevents.h"

/* What the linker puts before and behind the points of this program or library. */
extern struct bw_point __start_bwpoints __attribute__((weak, visibility("hidden")));
extern struct bw_point __stop_bwpoints __attribute__((weak, visibility("hidden")));

static __thread uint32_t own_thread __attribute__((tls_model("initial-exec"))); /* 0: to be asked */

const char *port_events_folder(void)
{
	const char *folder = secure_getenv("BW_EVENTS");

	return folder && *folder ? folder : NULL;
}

void port_events_complain(const char *folder, int err)
{
	char program[PATH_MAX] = "";

	port_events_program(program, sizeof(program));
	fprintf(stderr, "%s: BW_EVENTS=%s: %s: no event is recorded\n", program, folder, strerror(-err));
}

int port_events_program(char *name, size_t size_bytes)
{
	char path[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
	const char *last;

	if (length < 0)
		return -errno;
	path[length] = 0;
	last = strrchr(path, '/');
	snprintf(name, size_bytes, "%s", last ? last + 1 : path);
	return 0;
}

uint64_t port_events_pid(void)
{
	return (uint64_t)getpid();
}

uint32_t port_events_thread(void)
{
	if (!own_thread)
		own_thread = (uint32_t)syscall(SYS_gettid);
	return own_thread;
}

static void forget_thread(void)
{
	own_thread = 0;
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, forget_thread);
}

uint32_t port_events_cpu(void)
{
	int cpu = sched_getcpu();

	return cpu < 0 ? 0 : (uint32_t)cpu;
}

uint32_t port_events_cpus(void)
{
	long count = sysconf(_SC_NPROCESSORS_CONF);

	return count < 1 ? 1 : (uint32_t)count;
}

uint64_t port_events_clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_RAW, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

void port_events_points(struct bw_point **first_out, struct bw_point **end_out)
{
	*first_out = &__start_bwpoints;
	*end_out = &__stop_bwpoints;
}

static int map(struct port_events_file *file)
{
	struct stat status;

	if (fstat((int)file->handle, &status))
		return -errno;
	if (!S_ISREG(status.st_mode) || status.st_size <= 0)
		return -EPERM;
	file->size_bytes = (size_t)status.st_size;
	file->address = mmap(NULL, file->size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, (int)file->handle, 0);
	return file->address == MAP_FAILED ? -errno : 0;
}

/* All the room now: a page that cannot be had later would end the program, as would a file beyond the limit of its size. */
static int reserve_room(int handle, size_t size_bytes)
{
	struct rlimit limit;

	if (!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur != RLIM_INFINITY && size_bytes > limit.rlim_cur)
		return -EFBIG;
	return -posix_fallocate(handle, 0, (off_t)size_bytes);
}

int port_events_create(const char *folder, size_t size_bytes, struct port_events_file *file, char path[PORT_EVENTS_PATH_BYTES])
{
	int err;

	if (snprintf(path, PORT_EVENTS_PATH_BYTES, "%s/.making-XXXXXX", folder) >= PORT_EVENTS_PATH_BYTES)
		return -ENAMETOOLONG;
	file->handle = mkostemp(path, O_CLOEXEC);
	if (file->handle < 0)
		return -errno;
	err = reserve_room((int)file->handle, size_bytes);
	if (!err && flock((int)file->handle, LOCK_SH | LOCK_NB))
		err = -errno;
	if (!err)
		err = map(file);
	/* The map keeps the lock: a program has no descriptor more than without, not even where one of its standard streams is closed. */
	close((int)file->handle);
	file->handle = -1;
	if (err)
		unlink(path);
	return err;
}

int port_events_publish(const char *folder, const char *name, const char path[PORT_EVENTS_PATH_BYTES])
{
	char full[PATH_MAX];

	if (snprintf(full, sizeof(full), "%s/%s", folder, name) >= (int)sizeof(full))
		return -ENAMETOOLONG;
	/* A link, unlike a rename, never takes the place of another file. */
	if (link(path, full))
		return -errno;
	unlink(path);
	return 0;
}

int port_events_open(const char *path, struct port_events_file *file)
{
	int err;

	file->handle = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (file->handle < 0)
		return errno == ELOOP ? -EPERM : -errno;
	err = map(file);
	if (err)
		close((int)file->handle);
	return err;
}

void port_events_keep_map(struct port_events_file *file)
{
	close((int)file->handle);
	file->handle = -1;
}

void port_events_close(struct port_events_file *file)
{
	munmap(file->address, file->size_bytes);
	if (file->handle >= 0)
		close((int)file->handle);
	file->address = NULL;
	file->handle = -1;
}

bool port_events_is_held(const struct port_events_file *file, uint64_t pid)
{
	(void)pid; /* which may be another one's here: of a container, or of a program that another one has taken the place of */
	/* A map keeps the lock of the file that it was made from, also of a daemon that has closed all that it had open. */
	if (flock((int)file->handle, LOCK_EX | LOCK_NB))
		return errno == EWOULDBLOCK;
	flock((int)file->handle, LOCK_UN);
	return false;
}

int port_events_hold(const struct port_events_file *file)
{
	if (flock((int)file->handle, LOCK_EX | LOCK_NB))
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	return 0;
}

int port_events_remove(const char *path)
{
	return unlink(path) ? -errno : 0;
}

void port_events_close_removed(struct port_events_file *file, const char *path)
{
	unlink(path);
	port_events_close(file);
}
