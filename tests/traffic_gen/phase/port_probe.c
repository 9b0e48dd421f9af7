/* SPDX-License-Identifier: Apache-2.0 */
/* A program with two phases: what the tests in Python hold against one that is written in Python. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "phase/bwphase.h"

static int count(void *context, const char *parameters, char *reason, size_t reason_bytes)
{
	const char *number = strstr(parameters, "\"number\":");

	(void)context;
	(void)reason;
	(void)reason_bytes;
	return number ? bw_phase_value("twice", 2.0 * strtod(number + strlen("\"number\":"), NULL)) : -1;
}

static int fail(void *context, const char *parameters, char *reason, size_t reason_bytes)
{
	(void)context;
	(void)parameters;
	snprintf(reason, reason_bytes, "the \"disk\" is\tfull");
	return 1;
}

int main(void)
{
	if (bw_phase_register("count", count, NULL) || bw_phase_register("fail", fail, NULL) || !bw_phase_register("count", count, NULL) ||
	    !bw_phase_register("Count", count, NULL))
		return 1;
	return bw_phase_run();
}
