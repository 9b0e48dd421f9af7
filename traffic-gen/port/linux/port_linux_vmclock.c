/* SPDX-License-Identifier: Apache-2.0 */
/* Port layer for Linux: the page of the VMClock device. */
#define _GNU_SOURCE
#include "port/port_vmclock.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEVICE "/dev/vmclock0"
#define MAGIC UINT32_C(0x4b4c4356) /* "VCLK" */

enum { VERSION = 1, LOOKS = 1000 };

/* The beginning of struct vmclock_abi; little endian. */
struct vmclock_page {
	uint32_t magic, size_bytes;
	uint16_t version;
	uint8_t counter_id, time_type;
	uint32_t sequence; /* odd: what follows is being changed */
	uint64_t disruption_marker;
};

_Static_assert(offsetof(struct vmclock_page, sequence) == 12 && offsetof(struct vmclock_page, disruption_marker) == 16,
	       "linux/vmclock-abi.h");

static int check(const volatile struct vmclock_page *page)
{
	return le32toh(page->magic) == MAGIC && le16toh(page->version) == VERSION && le32toh(page->size_bytes) >= sizeof(*page) ?
		       0 : -EPROTO;
}

/* A device has a page; a file may end before one does. */
static int check_length(int fd, size_t size_bytes)
{
	struct stat status;

	if (fstat(fd, &status))
		return -errno;
	return S_ISREG(status.st_mode) && status.st_size < (off_t)size_bytes ? -EMSGSIZE : 0;
}

int port_vmclock_open(struct port_vmclock *vmclock)
{
	const char *named = secure_getenv("BWTIME_VMCLOCK");
	size_t size_bytes = (size_t)sysconf(_SC_PAGESIZE); /* the driver maps no more and no less */
	int fd = open(named && *named ? named : DEVICE, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	void *page;
	int err;

	*vmclock = (struct port_vmclock){ NULL, 0 };
	if (fd < 0)
		return -errno;
	err = check_length(fd, size_bytes);
	page = err ? MAP_FAILED : mmap(NULL, size_bytes, PROT_READ, MAP_SHARED, fd, 0);
	if (!err && page == MAP_FAILED)
		err = -errno;
	close(fd);
	if (err)
		return err;
	*vmclock = (struct port_vmclock){ page, size_bytes };
	err = check(page);
	if (err)
		port_vmclock_close(vmclock);
	return err;
}

int port_vmclock_marker(const struct port_vmclock *vmclock, uint64_t *marker)
{
	const volatile struct vmclock_page *page = vmclock->page;

	for (int i = 0; i < LOOKS; i++) {
		uint32_t before = le32toh(page->sequence);
		uint64_t value;

		atomic_thread_fence(memory_order_acquire);
		value = le64toh(page->disruption_marker);
		atomic_thread_fence(memory_order_acquire);
		if (!(before & 1) && le32toh(page->sequence) == before) {
			*marker = value;
			return 0;
		}
	}
	return -EAGAIN;
}

void port_vmclock_close(struct port_vmclock *vmclock)
{
	if (vmclock->page)
		munmap((void *)(uintptr_t)vmclock->page, vmclock->size_bytes);
	vmclock->page = NULL;
}
