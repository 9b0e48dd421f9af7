/* SPDX-License-Identifier: Apache-2.0 */
/** To be preloaded: a machine whose clock is stepped by 10 s when the process starts its first thread. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

enum { STEP_S = 10 };

static atomic_bool stepped;

static void find(const char *name, void *function)
{
	void *address = dlsym(RTLD_NEXT, name);

	memcpy(function, &address, sizeof(address));
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument)
{
	int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

	find("pthread_create", &create);
	atomic_store(&stepped, true);
	return create(thread, attributes, run, argument);
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
	static int (*read)(clockid_t, struct timespec *);
	int err;

	if (!read)
		find("clock_gettime", &read);
	err = read(clock, time);
	if (atomic_load(&stepped) && (clock == CLOCK_REALTIME || clock == CLOCK_TAI))
		time->tv_sec += STEP_S;
	return err;
}
