/* SPDX-License-Identifier: Apache-2.0 */
/* Port layer for Windows: threads that share what they work on. */
#include "port/port_sync.h"

#include <windows.h>

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "base/time_units.h"

struct port_lock {
	SRWLOCK lock;
};

struct port_bell {
	HANDLE count;
};

int port_lock_create(struct port_lock **lock_out)
{
	*lock_out = calloc(1, sizeof(**lock_out));
	if (!*lock_out)
		return -ENOMEM;
	InitializeSRWLock(&(*lock_out)->lock);
	return 0;
}

void port_lock_destroy(struct port_lock *lock)
{
	free(lock);
}

void port_lock_take(struct port_lock *lock)
{
	AcquireSRWLockExclusive(&lock->lock);
}

void port_lock_give(struct port_lock *lock)
{
	ReleaseSRWLockExclusive(&lock->lock);
}

int port_bell_create(struct port_bell **bell_out)
{
	struct port_bell *bell = calloc(1, sizeof(*bell));

	*bell_out = NULL;
	if (!bell)
		return -ENOMEM;
	bell->count = CreateSemaphoreW(NULL, 0, LONG_MAX, NULL);
	if (!bell->count) {
		free(bell);
		return -ENOMEM;
	}
	*bell_out = bell;
	return 0;
}

void port_bell_destroy(struct port_bell *bell)
{
	if (!bell)
		return;
	CloseHandle(bell->count);
	free(bell);
}

void port_bell_ring(struct port_bell *bell)
{
	ReleaseSemaphore(bell->count, 1, NULL);
}

int port_bell_wait(struct port_bell *bell, int64_t timeout_ns)
{
	return WaitForSingleObject(bell->count, (DWORD)((timeout_ns + NS_PER_MS - 1) / NS_PER_MS)) == WAIT_OBJECT_0 ? 0 : -ETIMEDOUT;
}
