/* SPDX-License-Identifier: Apache-2.0 */
/** What tests of the time service ask of the system itself. */
#ifndef BW_TEST_PORT_TEST_SYSTEM_H
#define BW_TEST_PORT_TEST_SYSTEM_H

#include <stdbool.h>
#include <stdint.h>

#ifdef _WIN32
#include <windows.h>

/** Whether another file can take the place of one that is mapped. */
enum { PORT_MAPPED_FILES_GO = 0 };

/** The clock that the library is compared with, as a program reads it: a part of its time. */
static inline int64_t port_test_clock_read(void)
{
	FILETIME now;

	GetSystemTimePreciseAsFileTime(&now);
	return now.dwLowDateTime;
}

/** Let everybody write to a file. @return false: this system has no such right */
static inline bool port_test_open_to_all(const char *path)
{
	(void)path;
	return false;
}

/** Make a pipe that has a name. @return false: this system has none */
static inline bool port_test_make_fifo(const char *path)
{
	(void)path;
	return false;
}
#else
#include <sys/stat.h>
#include <time.h>

enum { PORT_MAPPED_FILES_GO = 1 };

static inline int64_t port_test_clock_read(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_nsec;
}

static inline bool port_test_open_to_all(const char *path)
{
	return chmod(path, 0666) == 0;
}

static inline bool port_test_make_fifo(const char *path)
{
	return mkfifo(path, 0600) == 0;
}
#endif

#endif
