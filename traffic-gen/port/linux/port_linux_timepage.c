/* SPDX-License-Identifier: Apache-2.0 */
/* Port layer for Linux: the page of the time service. */
#define _GNU_SOURCE
#include "port/port_timeservice.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_PATH "/run/benchwright/time/page"
#define LOCK_SUFFIX ".lock"
#define BOOT_ID "/proc/sys/kernel/random/boot_id"

int port_boot_id(uint64_t id[2])
{
	FILE *file = fopen(BOOT_ID, "re");
	char text[40] = "";
	int digits = 0, err;

	if (!file)
		return -errno;
	err = fgets(text, sizeof(text), file) ? 0 : -EIO;
	fclose(file);
	id[0] = id[1] = 0;
	for (const char *at = text; *at && digits < 32; at++) {
		static const char hex[] = "0123456789abcdef";
		const char *digit = strchr(hex, *at);

		if (!digit)
			continue;
		id[digits / 16] = id[digits / 16] << 4 | (uint64_t)(digit - hex);
		digits++;
	}
	return err ? err : digits == 32 ? 0 : -EIO;
}

const char *port_timepage_default_path(void)
{
	const char *path = secure_getenv("BWTIME_PAGE");

	return path && *path ? path : DEFAULT_PATH;
}

/* Return 0 when nobody but the owner can write to a regular file. */
static int check_file(int fd, struct stat *status)
{
	if (fstat(fd, status))
		return -errno;
	return S_ISREG(status->st_mode) && !(status->st_mode & (S_IWGRP | S_IWOTH)) ? 0 : -EPERM;
}

static int map(int fd, size_t size_bytes, int protection, struct port_timepage *page)
{
	void *address = mmap(NULL, size_bytes, protection, MAP_SHARED, fd, 0);

	if (address == MAP_FAILED)
		return -errno;
	page->readable = address;
	page->writable = protection & PROT_WRITE ? address : NULL;
	page->size_bytes = size_bytes;
	return 0;
}

/* Readers may lock a file that they can read: the lock is a file of the writer's alone. */
static int lock(const char *path, intptr_t *lock_out)
{
	struct flock all = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	char name[PATH_MAX];
	int fd, err;

	if (snprintf(name, sizeof(name), "%s" LOCK_SUFFIX, path) >= (int)sizeof(name))
		return -ENAMETOOLONG;
	fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return errno == ELOOP ? -EPERM : -errno;
	if (fcntl(fd, F_OFD_SETLK, &all)) {
		err = errno == EAGAIN || errno == EACCES ? -EBUSY : -errno;
		close(fd);
		return err;
	}
	*lock_out = fd;
	return 0;
}

/* Of a page that is locked. */
static int map_file(const char *path, size_t size_bytes, struct port_timepage *page)
{
	struct stat status;
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644), err;

	if (fd < 0)
		return errno == ELOOP ? -EPERM : -errno;
	err = check_file(fd, &status);
	if (!err && status.st_uid != geteuid())
		err = -EPERM;
	if (!err && fchmod(fd, 0644)) /* whatever the umask was */
		err = -errno;
	if (!err && status.st_size < (off_t)size_bytes && ftruncate(fd, (off_t)size_bytes))
		err = -errno;
	if (!err)
		err = map(fd, size_bytes, PROT_READ | PROT_WRITE, page);
	if (err)
		close(fd);
	else
		page->file = fd; /* by which port_timepage_is_there knows it */
	return err;
}

/* Likewise; where it fails, the lock ends. */
static int map_writable(const char *path, size_t size_bytes, struct port_timepage *page)
{
	int err = map_file(path, size_bytes, page);

	if (err)
		close((int)page->lock);
	return err;
}

int port_timepage_create(const char *path, size_t size_bytes, struct port_timepage *page)
{
	int err;

	memset(page, 0, sizeof(*page));
	path = path ? path : port_timepage_default_path();
	err = lock(path, &page->lock);
	return err ? err : map_writable(path, size_bytes, page);
}

int port_timepage_renew(const char *path, size_t size_bytes, struct port_timepage *page)
{
	int err;

	path = path ? path : port_timepage_default_path();
	munmap(page->writable, page->size_bytes);
	close((int)page->file);
	page->readable = page->writable = NULL;
	if (unlink(path) && errno != ENOENT) {
		err = -errno;
		close((int)page->lock);
		return err;
	}
	return map_writable(path, size_bytes, page);
}

/* Whether a path names an open file. Returns 1, 0 or -errno. */
static int is_file_of(const char *path, const char *suffix, intptr_t fd)
{
	struct stat named, own;
	char name[PATH_MAX];

	if (snprintf(name, sizeof(name), "%s%s", path, suffix) >= (int)sizeof(name))
		return -ENAMETOOLONG;
	if (lstat(name, &named))
		return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
	if (fstat((int)fd, &own))
		return -errno;
	return named.st_dev == own.st_dev && named.st_ino == own.st_ino;
}

int port_timepage_is_there(const char *path, const struct port_timepage *page)
{
	int found;

	path = path ? path : port_timepage_default_path();
	found = is_file_of(path, "", page->file);
	return found == 1 ? is_file_of(path, LOCK_SUFFIX, page->lock) : found;
}

int port_timepage_remake(const char *path, size_t size_bytes, struct port_timepage *page, struct port_timepage *old)
{
	struct port_timepage next = { .lock = -1 };
	int locked, err = 0;

	path = path ? path : port_timepage_default_path();
	locked = is_file_of(path, LOCK_SUFFIX, page->lock);
	if (locked < 0)
		return locked;
	if (!locked)
		err = lock(path, &next.lock); /* before anything is touched: another service may be there */
	if (!err && unlink(path) && errno != ENOENT)
		err = -errno;
	if (!err)
		err = map_file(path, size_bytes, &next);
	if (err) {
		if (next.lock >= 0)
			close((int)next.lock);
		return err;
	}
	*old = *page;
	if (locked) {
		next.lock = page->lock;
		old->lock = -1;
	}
	*page = next;
	return 0;
}

int port_timepage_open(const char *path, size_t size_bytes, struct port_timepage *page)
{
	/* A FIFO in its place must not hold the reader up. */
	int fd = open(path ? path : port_timepage_default_path(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), err;
	struct stat status;

	memset(page, 0, sizeof(*page));
	page->lock = -1;
	if (fd < 0)
		return -errno;
	err = check_file(fd, &status);
	if (!err && status.st_size < (off_t)size_bytes)
		err = -EMSGSIZE;
	if (!err)
		err = map(fd, size_bytes, PROT_READ, page);
	close(fd);
	return err;
}

void port_timepage_close(struct port_timepage *page)
{
	if (!page->readable)
		return;
	munmap(page->writable ? page->writable : (void *)(uintptr_t)page->readable, page->size_bytes);
	if (page->writable) {
		close((int)page->file);
		if (page->lock >= 0)
			close((int)page->lock);
	}
	memset(page, 0, sizeof(*page));
}

int64_t port_timepage_realtime_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}
