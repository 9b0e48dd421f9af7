/* SPDX-License-Identifier: Apache-2.0 */
#include "port_libc.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static struct libc calls;

static void *look_up(const char *name)
{
	void *found = dlsym(RTLD_NEXT, name);

	if (!found) {
		fprintf(stderr, "bw-accel: the C library has no %s\n", name);
		abort();
	}
	return found;
}

static void look_all_up(void)
{
	/* ISO C has no conversion of a pointer to an object into one to a function; POSIX asks for it. */
#define LOOK_UP(name, result, parameters) *(void **)&calls.name = look_up(#name);
	LIBC_CALLS(LOOK_UP)
	LIBC_CALLS_TIME64(LOOK_UP)
#undef LOOK_UP
}

const struct libc *libc_calls(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, look_all_up);
	return &calls;
}
