/* SPDX-License-Identifier: Apache-2.0 */
/* For programs that make calls to see whether these do what they say. */
#ifndef BW_CALL_CHECK_H
#define BW_CALL_CHECK_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** End with exit code 1, and a line on standard error, where it is not so. */
#define CHECK(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "line %d: not so: %s (%s)\n", __LINE__, #condition, strerror(errno)); \
			exit(1); \
		} \
	} while (0)

#endif
