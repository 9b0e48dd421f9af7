/* SPDX-License-Identifier: Apache-2.0 */
/** Checks of the C unit tests: a failed one is printed and counted, the test goes on; main() returns check_result(). */
#ifndef BW_TEST_CHECK_H
#define BW_TEST_CHECK_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static unsigned int check_failures, check_count;

#define CHECK(condition) CHECK_THAT(condition, "%s", #condition)

/** Check, and say in printf's words what was found when it fails. */
#define CHECK_THAT(condition, ...)                                     \
	do {                                                           \
		check_count++;                                         \
		if (!(condition)) {                                    \
			check_failures++;                              \
			fprintf(stderr, "%s:%d: ", __FILE__, __LINE__); \
			fprintf(stderr, __VA_ARGS__);                  \
			fputc('\n', stderr);                           \
		}                                                      \
	} while (0)

#define CHECK_INT(found, expected)                                                                            \
	do {                                                                                                  \
		int64_t check_found = (int64_t)(found), check_expected = (int64_t)(expected);                 \
		CHECK_THAT(check_found == check_expected, "%s is %" PRId64 ", not %" PRId64, #found, check_found, \
			   check_expected);                                                                   \
	} while (0)

#define CHECK_TEXT(found, expected) \
	CHECK_THAT(strcmp(found, expected) == 0, "%s is \"%s\", not \"%s\"", #found, found, expected)

/** Exit code of a test: 0 when at least one check ran and none failed. */
static inline int check_result(void)
{
	fprintf(stderr, "%u checks, %u failed\n", check_count, check_failures);
	return check_failures || !check_count;
}

#endif
