/* SPDX-License-Identifier: Apache-2.0 */
/* Port layer for Linux: shared pages and the count of retired instructions. */
#define _GNU_SOURCE
#include "port/port_clock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "port/port.h"

#define PCI_DEVICES "/sys/bus/pci/devices"
#define LOCK_RETRY_NS INT64_C(200000)

enum { IVSHMEM_VENDOR = 0x1af4, IVSHMEM_DEVICE = 0x1110 };

/* Read a hexadecimal number; 0 when there is none. */
static unsigned int read_hex(const char *device, const char *attribute)
{
	char path[300];
	unsigned int value = 0;
	FILE *file;

	snprintf(path, sizeof(path), PCI_DEVICES "/%.200s/%s", device, attribute);
	file = fopen(path, "re");
	if (!file)
		return 0;
	if (fscanf(file, "%x", &value) != 1)
		value = 0;
	fclose(file);
	return value;
}

/* No driver binds to the device: let it answer to accesses of its memory. */
static void enable_device(const char *device)
{
	char path[300];
	int fd;

	snprintf(path, sizeof(path), PCI_DEVICES "/%.200s/enable", device);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return; /* the mapping will tell */
	if (write(fd, "1", 1) != 1)
		errno = 0;
	close(fd);
}

int port_page_find(char *path, size_t size_bytes)
{
	char found[200] = "";
	struct dirent *entry;
	DIR *devices = opendir(PCI_DEVICES);

	while (devices && (entry = readdir(devices))) {
		if (entry->d_name[0] == '.' || strlen(entry->d_name) >= sizeof(found))
			continue;
		if (read_hex(entry->d_name, "vendor") != IVSHMEM_VENDOR || read_hex(entry->d_name, "device") != IVSHMEM_DEVICE)
			continue;
		if (!found[0] || strcmp(entry->d_name, found) < 0)
			snprintf(found, sizeof(found), "%s", entry->d_name);
	}
	if (devices)
		closedir(devices);
	if (!found[0])
		return -ENODEV;
	enable_device(found);
	return snprintf(path, size_bytes, PCI_DEVICES "/%s/resource2", found) < (int)size_bytes ? 0 : -ENAMETOOLONG;
}

int port_page_map(const char *path, size_t size_bytes, bool create, struct port_page *page)
{
	int fd = open(path, O_RDWR | O_CLOEXEC | (create ? O_CREAT : 0), 0600);
	struct stat status;
	void *address;
	int err = 0;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &status))
		err = -errno;
	else if (status.st_size < (off_t)size_bytes)
		err = !create ? -EMSGSIZE : ftruncate(fd, (off_t)size_bytes) ? -errno : 0;
	if (!err) {
		address = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (address == MAP_FAILED)
			err = -errno;
	}
	if (err) {
		close(fd);
		return err;
	}
	*page = (struct port_page){ .address = address, .size_bytes = size_bytes, .handle = fd };
	return 0;
}

void port_page_unmap(struct port_page *page)
{
	if (!page->address)
		return;
	munmap(page->address, page->size_bytes);
	close((int)page->handle);
	page->address = NULL;
}

static int lock_byte(const struct port_page *page, int number, short type)
{
	struct flock lock = { .l_type = type, .l_whence = SEEK_SET, .l_start = number, .l_len = 1 };

	return fcntl((int)page->handle, F_OFD_SETLK, &lock) ? -errno : 0;
}

int port_page_lock(const struct port_page *page, int number, int64_t timeout_ns)
{
	int64_t deadline_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC) + timeout_ns;

	for (;;) {
		int err = lock_byte(page, number, F_WRLCK);

		if (err != -EAGAIN && err != -EACCES)
			return err;
		if (port_clock_now_ns(PORT_CLOCK_MONOTONIC) >= deadline_monotonic_ns)
			return -EBUSY;
		port_sleep_ns(LOCK_RETRY_NS);
	}
}

void port_page_unlock(const struct port_page *page, int number)
{
	lock_byte(page, number, F_UNLCK);
}

struct port_instructions {
	int fd;
	bool direct; /* RDPMC is allowed */
	struct perf_event_mmap_page *page;
	size_t page_bytes;
};

int port_instructions_open(struct port_instructions **instructions_out)
{
	struct perf_event_attr attributes = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(attributes),
		.config = PERF_COUNT_HW_INSTRUCTIONS,
		.pinned = 1,
	};
	struct port_instructions *instructions;
	long fd = syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		return errno == ENOSYS ? -ENOTSUP : -errno;
	instructions = calloc(1, sizeof(*instructions));
	if (!instructions) {
		close((int)fd);
		return -ENOMEM;
	}
	instructions->fd = (int)fd;
	instructions->page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	instructions->page = mmap(NULL, instructions->page_bytes, PROT_READ, MAP_SHARED, (int)fd, 0);
	if (instructions->page == MAP_FAILED)
		instructions->page = NULL;
#if defined(__x86_64__) || defined(__i386__)
	instructions->direct = instructions->page && instructions->page->cap_user_rdpmc;
#endif
	*instructions_out = instructions;
	return 0;
}

void port_instructions_close(struct port_instructions *instructions)
{
	if (!instructions)
		return;
	if (instructions->page)
		munmap(instructions->page, instructions->page_bytes);
	close(instructions->fd);
	free(instructions);
}

#if defined(__x86_64__) || defined(__i386__)
/* See the comment of struct perf_event_mmap_page in linux/perf_event.h. */
static uint64_t read_direct(const struct perf_event_mmap_page *page)
{
	const volatile struct perf_event_mmap_page *now = page;
	uint32_t sequence, index, low = 0, high = 0;
	uint64_t count;

	do {
		sequence = now->lock;
		__asm__ volatile("" : : : "memory");
		index = now->index;
		count = (uint64_t)now->offset;
		if (index) {
			unsigned int unused_bits = 64 - now->pmc_width;

			__asm__ volatile("rdpmc" : "=a"(low), "=d"(high) : "c"(index - 1));
			/* Sign-extend what the counter is wide. */
			count += (uint64_t)((int64_t)(((uint64_t)high << 32 | low) << unused_bits) >> unused_bits);
		}
		__asm__ volatile("" : : : "memory");
	} while (now->lock != sequence);
	return count;
}
#else
static uint64_t read_direct(const struct perf_event_mmap_page *page)
{
	(void)page;
	return 0;
}
#endif

uint64_t port_instructions_read(const struct port_instructions *instructions)
{
	uint64_t count;

	if (instructions->direct)
		return read_direct(instructions->page);
	return read(instructions->fd, &count, sizeof(count)) == sizeof(count) ? count : 0;
}
