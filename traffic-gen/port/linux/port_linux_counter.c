/* SPDX-License-Identifier: Apache-2.0 */
/* Port layer for Linux: whether this processor has a counter, where that must be tried. */
#define _GNU_SOURCE
#include "port/port_clock.h"

#if PORT_COUNTER_TRIED
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>

static sigjmp_buf no_counter; /* a signal handler has no other way out of an instruction that there is not */
static bool counter_answers;

static void on_illegal_instruction(int number)
{
	(void)number;
	siglongjmp(no_counter, 1);
}

/* Linux tells programs of the counter only where its own vDSO uses it: reading it is the proof. */
static void try_counter(void)
{
	struct sigaction caught = { .sa_handler = on_illegal_instruction }, before;

	if (sigaction(SIGILL, &caught, &before))
		return;
	if (!sigsetjmp(no_counter, 1)) {
		port_counter_read();
		counter_answers = port_counter_stated_hz() != 0;
	}
	sigaction(SIGILL, &before, NULL);
}

enum port_counter_kind port_counter_kind(void)
{
	static pthread_once_t tried = PTHREAD_ONCE_INIT;

	pthread_once(&tried, try_counter);
	return counter_answers ? PORT_COUNTER : PORT_COUNTER_NONE;
}
#endif
