/* SPDX-License-Identifier: Apache-2.0 */
/** Fuzz target: logs of the time service that are computed again. They are refused, differ or are equal; nothing else. */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../traffic_gen/fuzz.h"
#include "config/options.h"
#include "timeservice/recompute.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static FILE *nowhere;
	static int file = -1;
	static char path[64];
	char error[RECOMPUTE_ERROR_BYTES] = "";
	int code;

	if (file < 0) {
		file = memfd_create("log", 0);
		nowhere = fopen("/dev/null", "w");
		snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	}
	if (file < 0 || !nowhere || ftruncate(file, 0) || pwrite(file, data, size, 0) != (ssize_t)size)
		abort();
	code = recompute(path, size % 2, nowhere, error);
	if (code != EXIT_DONE && code != EXIT_INVALID && code != EXIT_BAD_INPUT)
		abort();
	if ((code == EXIT_DONE) != (error[0] == '\0'))
		abort();
	return 0;
}
