/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that say what a signal does. A wait here is a ppoll(2), which the kernel ends for every handler; calls on sockets that wait are
 * to go on after those with SA_RESTART. So a handler without it is called by a function here, which counts. What a program asks for
 * is told by the kernel's own record: whose handler it has, and, if it is one of these functions, the table of what they call.
 */
#include "port_signals.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "port_calls.h"
#include "port_libc.h"

typedef void (*handler_with_info)(int number, siginfo_t *info, void *context);

/* Of two threads that set the same signal's at a time either may win, as in the kernel. */
static _Atomic(handler_with_info) handlers[_NSIG];
/* Handlers use it: what is looked up at its first use would ask for memory there. */
static __thread volatile unsigned int interruptions __attribute__((tls_model("initial-exec")));

unsigned int signals_interruptions(void)
{
	return interruptions;
}

static void interrupt_with_info(int number, siginfo_t *info, void *context)
{
	interruptions++;
	atomic_load(&handlers[number])(number, info, context);
}

static void interrupt(int number)
{
	interruptions++;
	((sighandler_t)(void (*)(void))atomic_load(&handlers[number]))(number);
}

static bool is_here(const struct sigaction *action)
{
	return action->sa_flags & SA_SIGINFO ? action->sa_sigaction == interrupt_with_info : action->sa_handler == interrupt;
}

static bool ends_waits(const struct sigaction *action)
{
	return !(action->sa_flags & SA_RESTART) && action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN;
}

EXPORT int sigaction(int number, const struct sigaction *action, struct sigaction *before)
{
	bool known = number > 0 && number < _NSIG;
	handler_with_info called = known ? atomic_load(&handlers[number]) : NULL;
	struct sigaction counting, was;

	if (known && action && ends_waits(action) && !is_here(action)) {
		counting = *action;
		atomic_store(&handlers[number], action->sa_sigaction);
		if (action->sa_flags & SA_SIGINFO)
			counting.sa_sigaction = interrupt_with_info;
		else
			counting.sa_handler = interrupt;
		action = &counting;
	}
	if (libc_calls()->sigaction(number, action, &was)) {
		if (known)
			atomic_store(&handlers[number], called);
		return -1;
	}
	if (!before)
		return 0;
	*before = was;
	if (is_here(&was))
		before->sa_sigaction = called;
	return 0;
}

/* The C library's other functions set what they set; have it counted if that is without SA_RESTART, and not if it is with it. */
static void settle(int number)
{
	struct sigaction action;
	int before = errno;

	if (sigaction(number, NULL, &action) == 0)
		sigaction(number, &action, NULL);
	errno = before;
}

static sighandler_t set_by(sighandler_t (*function)(int number, sighandler_t handler), int number, sighandler_t handler)
{
	struct sigaction was;
	sighandler_t before;

	if (sigaction(number, NULL, &was))
		return SIG_ERR;
	before = function(number, handler);
	if (before == SIG_ERR)
		return before;
	settle(number);
	return before == SIG_HOLD ? before : was.sa_handler;
}

EXPORT sighandler_t signal(int number, sighandler_t handler)
{
	return set_by(libc_calls()->signal, number, handler);
}

EXPORT sighandler_t bsd_signal(int number, sighandler_t handler) __THROW __attribute__((alias("signal")));
EXPORT sighandler_t ssignal(int number, sighandler_t handler) __THROW __attribute__((alias("signal")));

EXPORT sighandler_t sysv_signal(int number, sighandler_t handler)
{
	return set_by(libc_calls()->sysv_signal, number, handler);
}

/* What signal(3) is to a program that is compiled for POSIX alone. */
EXPORT sighandler_t __sysv_signal(int number, sighandler_t handler) __THROW __attribute__((alias("sysv_signal")));

EXPORT sighandler_t sigset(int number, sighandler_t handler)
{
	return set_by(libc_calls()->sigset, number, handler);
}

EXPORT int siginterrupt(int number, int interrupts)
{
	int result = libc_calls()->siginterrupt(number, interrupts);

	if (result == 0)
		settle(number);
	return result;
}
