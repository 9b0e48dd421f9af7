/* SPDX-License-Identifier: Apache-2.0 */
/* Port layer for Linux: threads that share what they work on. */
#define _GNU_SOURCE
#include "port/port_sync.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <time.h>

#include "base/time_units.h"

struct port_lock {
	pthread_mutex_t mutex;
};

struct port_bell {
	sem_t count;
};

int port_lock_create(struct port_lock **lock_out)
{
	struct port_lock *lock = calloc(1, sizeof(*lock));
	pthread_mutexattr_t attributes;
	int err;

	*lock_out = NULL;
	if (!lock)
		return -ENOMEM;
	err = pthread_mutexattr_init(&attributes);
	if (!err) {
		pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
		err = pthread_mutex_init(&lock->mutex, &attributes);
		pthread_mutexattr_destroy(&attributes);
	}
	if (err) {
		free(lock);
		return -err;
	}
	*lock_out = lock;
	return 0;
}

void port_lock_destroy(struct port_lock *lock)
{
	if (!lock)
		return;
	pthread_mutex_destroy(&lock->mutex);
	free(lock);
}

void port_lock_take(struct port_lock *lock)
{
	pthread_mutex_lock(&lock->mutex);
}

void port_lock_give(struct port_lock *lock)
{
	pthread_mutex_unlock(&lock->mutex);
}

int port_bell_create(struct port_bell **bell_out)
{
	struct port_bell *bell = calloc(1, sizeof(*bell));

	*bell_out = NULL;
	if (!bell)
		return -ENOMEM;
	sem_init(&bell->count, 0, 0);
	*bell_out = bell;
	return 0;
}

void port_bell_destroy(struct port_bell *bell)
{
	if (!bell)
		return;
	sem_destroy(&bell->count);
	free(bell);
}

void port_bell_ring(struct port_bell *bell)
{
	sem_post(&bell->count);
}

/* A semaphore waits by CLOCK_REALTIME everywhere, and by another clock since glibc 2.30 alone: a step makes one wait shorter or longer. */
int port_bell_wait(struct port_bell *bell, int64_t timeout_ns)
{
	struct timespec until;
	int64_t ns;

	clock_gettime(CLOCK_REALTIME, &until);
	ns = until.tv_nsec + timeout_ns;
	until.tv_sec += ns / NS_PER_S;
	until.tv_nsec = ns % NS_PER_S;
	return sem_timedwait(&bell->count, &until) ? -errno : 0;
}
