/* SPDX-License-Identifier: Apache-2.0 */
/* bw-timed from its command line to its exit code; what a system's own way of starting services calls. */
#ifndef BW_TIMESERVICE_TIMED_H
#define BW_TIMESERVICE_TIMED_H

#include <stdbool.h>

#include "config/options.h"

/** Run the service. @return an exit code; one line was written to stderr where it is not 0 */
int timed_main(int argc, char **argv);

/** Whether a new start can cure what an exit code says: not wrong settings, nor what this machine lacks. As bw-timed.service has it. */
static inline bool timed_restart_helps(int code)
{
	return code != EXIT_DONE && code != EXIT_BAD_INPUT && code != EXIT_CAPABILITY;
}

#endif
