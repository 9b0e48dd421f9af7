/* SPDX-License-Identifier: Apache-2.0 */
/* Filters for system calls (seccomp): a process that has one is ended for calls of this library that it does not expect. */
#include "port_libc.h"

#include <linux/seccomp.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "port_calls.h"
#include "port_engine.h"
#include "port_parent.h"
#include "port_say.h"
#include "port_wait.h"

/* What comes from a parent is fetched before the filter is there: behind it a connection is read, written and waited for as any other. */
static void prepare(void)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;
	bool asks;

	wait_lock();
	asks = !parent_before_filter();
	asks |= engine_runs();
	wait_unlock();
	if (asks && !atomic_flag_test_and_set(&said))
		say("seccomp: for the user-mode stack the filter has to allow close, epoll_wait, eventfd2, fcntl, futex, getrandom, "
		    "ioctl, ppoll, read, recvfrom, recvmsg, rt_sigprocmask, sendmsg, sendto, setsockopt, write");
}

void calls_prepare_filter(long number, const long *words)
{
	bool sets = number == SYS_prctl && words[0] == PR_SET_SECCOMP;

	if (sets || (number == SYS_seccomp && (words[0] == SECCOMP_SET_MODE_STRICT || words[0] == SECCOMP_SET_MODE_FILTER)))
		prepare();
}

EXPORT int prctl(int option, ...)
{
	unsigned long words[4];
	va_list arguments;

	va_start(arguments, option);
	for (int i = 0; i < 4; i++)
		words[i] = va_arg(arguments, unsigned long);
	va_end(arguments);
	if (option == PR_SET_SECCOMP)
		prepare();
	return libc_calls()->prctl(option, words[0], words[1], words[2], words[3]);
}

/* A second name, where time has 64 bits in others. */
#if __SIZEOF_LONG__ == 4
EXPORT int __prctl_time64(int option, ...) __THROW __attribute__((alias("prctl")));
#endif
