/* SPDX-License-Identifier: Apache-2.0 */
/*
 * syscall(2), by which programs go past the C library's own functions. What it asks of a socket here goes to the function that stands
 * in for the call; all else goes on as it is. System calls that a program makes by instructions of its own cannot be seen.
 */
#include "port_libc.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/time_units.h"
#include "port_calls.h"
#include "port_clocks.h"
#include "port_epoll.h"
#include "port_passing.h"
#include "port_poll.h"
#include "port_private.h"
#include "port_say.h"
#include "port_sockets.h"

enum { ARGUMENTS = 6 };

/* A word as the kernel has it: what the parameter is, number or pointer, is its call's to know. */
#define POINTER(word) ((void *)(word))

static bool is_ours(long fd)
{
	return fd >= 0 && fd <= INT_MAX && (sockets_find((int)fd) || epoll_find((int)fd) || private_owns((int)fd));
}

/* io_uring hands descriptors to the kernel, which knows nothing of connections here; programs do without where it is missing. */
static long refuse_io_uring(void)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;

	if (!atomic_flag_test_and_set(&said))
		say("io_uring is not supported: the program has to do without");
	errno = ENOSYS;
	return -1;
}

/* The kernel's set of signals is smaller than the C library's. Return the latter, or NULL as it was. */
static const sigset_t *to_mask(const void *kernel_mask, size_t kernel_bytes, sigset_t *mask)
{
	sigemptyset(mask);
	if (kernel_mask)
		memcpy(mask, kernel_mask, kernel_bytes < sizeof(*mask) ? kernel_bytes : sizeof(*mask));
	return kernel_mask ? mask : NULL;
}

/* The kernel leaves in a timeout what is left of it; the C library's functions hide that. */
static void leave_rest(struct timespec *timeout, uint64_t began_us)
{
	uint64_t passed_us = clocks_now_us() - began_us, left_us;

	if (!timeout)
		return;
	left_us = (uint64_t)timeout->tv_sec * US_PER_S + (uint64_t)timeout->tv_nsec / NS_PER_US;
	left_us = left_us > passed_us ? left_us - passed_us : 0;
	*timeout = (struct timespec){ .tv_sec = (time_t)(left_us / US_PER_S), .tv_nsec = (long)(left_us % US_PER_S * NS_PER_US) };
}

static long wait_ppoll(const long *words)
{
	struct timespec *timeout = POINTER(words[2]);
	uint64_t began_us = clocks_now_us();
	sigset_t mask;
	int ready = ppoll(POINTER(words[0]), (nfds_t)words[1], timeout, to_mask(POINTER(words[3]), (size_t)words[4], &mask));

	if (ready >= 0 || errno == EINTR)
		leave_rest(timeout, began_us);
	return ready;
}

static long wait_pselect(const long *words)
{
	const struct { const void *mask; size_t bytes; } none = { 0 }, *given = words[5] ? POINTER(words[5]) : &none;
	struct timespec *timeout = POINTER(words[4]);
	uint64_t began_us = clocks_now_us();
	sigset_t mask;
	int ready = pselect((int)words[0], POINTER(words[1]), POINTER(words[2]), POINTER(words[3]), timeout,
			    to_mask(given->mask, given->bytes, &mask));

	if (ready >= 0 || errno == EINTR)
		leave_rest(timeout, began_us);
	return ready;
}

static long wait_epoll(const long *words, bool fine)
{
	sigset_t mask;
	const sigset_t *given = to_mask(POINTER(words[4]), (size_t)words[5], &mask);

#if __SIZEOF_LONG__ == 4
	if (fine) /* the kernel has it with time of 64 bits alone */
		return __epoll_pwait2_time64((int)words[0], POINTER(words[1]), (int)words[2], POINTER(words[3]), given);
#else
	if (fine)
		return epoll_pwait2((int)words[0], POINTER(words[1]), (int)words[2], POINTER(words[3]), given);
#endif
	return epoll_pwait((int)words[0], POINTER(words[1]), (int)words[2], (int)words[3], given);
}

#ifdef SYS_ppoll_time64
/* The same with time of 64 bits, the word that is numbered. */
static long wait_time64(long (*wait)(const long *words), const long *words, int at)
{
	struct time64 *timeout = POINTER(words[at]);
	long copied[ARGUMENTS], ready;
	struct timespec narrowed;

	memcpy(copied, words, sizeof(copied));
	copied[at] = (long)calls_narrow(timeout, &narrowed);
	ready = wait(copied);
	if (timeout)
		*timeout = (struct time64){ .seconds = narrowed.tv_sec, .nanoseconds = (int32_t)narrowed.tv_nsec };
	return ready;
}
#endif

/* Whether a call has to do with what is here; without one of our descriptors only those that make one have. */
static bool concerns_stack(long number, const long *words)
{
	switch (number) {
	case SYS_socket:
	case SYS_epoll_create1:
	case SYS_close_range:
	case SYS_sendmmsg: return true;
	case SYS_splice: return is_ours(words[0]) || is_ours(words[2]);
	case SYS_ppoll: return poll_concerns_stack(POINTER(words[0]), (nfds_t)words[1]);
	case SYS_pselect6: return select_concerns_stack((int)words[0], POINTER(words[1]), POINTER(words[2]), POINTER(words[3]));
	case SYS_dup3: return is_ours(words[0]) || is_ours(words[1]);
	case SYS_sendmsg: return is_ours(words[0]) || passing_takes_ours(POINTER(words[1]));
#ifdef SYS_ppoll_time64
	case SYS_ppoll_time64: return poll_concerns_stack(POINTER(words[0]), (nfds_t)words[1]);
	case SYS_pselect6_time64: return select_concerns_stack((int)words[0], POINTER(words[1]), POINTER(words[2]), POINTER(words[3]));
#endif
#ifdef SYS__newselect
	case SYS__newselect: return select_concerns_stack((int)words[0], POINTER(words[1]), POINTER(words[2]), POINTER(words[3]));
#endif
	/* What newer machines leave out. */
#ifdef SYS_epoll_create
	case SYS_epoll_create: return true;
#endif
#ifdef SYS_poll
	case SYS_poll: return poll_concerns_stack(POINTER(words[0]), (nfds_t)words[1]);
#endif
#ifdef SYS_select
	case SYS_select: return select_concerns_stack((int)words[0], POINTER(words[1]), POINTER(words[2]), POINTER(words[3]));
#endif
#ifdef SYS_dup2
	case SYS_dup2: return is_ours(words[0]) || is_ours(words[1]);
#endif
	default: return is_ours(words[0]);
	}
}

/* Calls of sockets alone. Return whether it was one. */
static bool call_of_socket(long number, const long *words, long *result)
{
	int fd = (int)words[0];

	switch (number) {
	case SYS_socket: *result = socket(fd, (int)words[1], (int)words[2]); return true;
	case SYS_bind: *result = bind(fd, POINTER(words[1]), (socklen_t)words[2]); return true;
	case SYS_listen: *result = listen(fd, (int)words[1]); return true;
	case SYS_connect: *result = connect(fd, POINTER(words[1]), (socklen_t)words[2]); return true;
#ifdef SYS_accept
	case SYS_accept: *result = accept(fd, POINTER(words[1]), POINTER(words[2])); return true;
#endif
	case SYS_accept4: *result = accept4(fd, POINTER(words[1]), POINTER(words[2]), (int)words[3]); return true;
	case SYS_shutdown: *result = shutdown(fd, (int)words[1]); return true;
	case SYS_getsockname: *result = getsockname(fd, POINTER(words[1]), POINTER(words[2])); return true;
	case SYS_getpeername: *result = getpeername(fd, POINTER(words[1]), POINTER(words[2])); return true;
	case SYS_setsockopt:
		*result = setsockopt(fd, (int)words[1], (int)words[2], POINTER(words[3]), (socklen_t)words[4]);
		return true;
	case SYS_getsockopt: *result = getsockopt(fd, (int)words[1], (int)words[2], POINTER(words[3]), POINTER(words[4])); return true;
	default: return false;
	}
}

static bool call_of_transfer(long number, const long *words, long *result)
{
	int fd = (int)words[0], flags = (int)words[3];

	switch (number) {
#ifdef SYS_send
	case SYS_send: *result = send(fd, POINTER(words[1]), (size_t)words[2], flags); return true;
#endif
	case SYS_sendto:
		*result = sendto(fd, POINTER(words[1]), (size_t)words[2], flags, POINTER(words[4]), (socklen_t)words[5]);
		return true;
	case SYS_sendmsg: *result = sendmsg(fd, POINTER(words[1]), (int)words[2]); return true;
	case SYS_sendmmsg: *result = sendmmsg(fd, POINTER(words[1]), (unsigned int)words[2], flags); return true;
	case SYS_sendfile: *result = sendfile(fd, (int)words[1], POINTER(words[2]), (size_t)words[3]); return true;
#ifdef SYS_sendfile64
	case SYS_sendfile64: *result = sendfile64(fd, (int)words[1], POINTER(words[2]), (size_t)words[3]); return true;
#endif
	case SYS_write: *result = write(fd, POINTER(words[1]), (size_t)words[2]); return true;
	case SYS_writev: *result = writev(fd, POINTER(words[1]), (int)words[2]); return true;
#ifdef SYS_recv
	case SYS_recv: *result = recv(fd, POINTER(words[1]), (size_t)words[2], flags); return true;
#endif
	case SYS_recvfrom:
		*result = recvfrom(fd, POINTER(words[1]), (size_t)words[2], flags, POINTER(words[4]), POINTER(words[5]));
		return true;
	case SYS_recvmsg: *result = recvmsg(fd, POINTER(words[1]), (int)words[2]); return true;
	case SYS_recvmmsg:
		*result = recvmmsg(fd, POINTER(words[1]), (unsigned int)words[2], flags, POINTER(words[4]));
		return true;
#ifdef SYS_recvmmsg_time64
	case SYS_recvmmsg_time64:
		*result = __recvmmsg64(fd, POINTER(words[1]), (unsigned int)words[2], flags, POINTER(words[4]));
		return true;
#endif
	case SYS_splice:
		*result = splice(fd, POINTER(words[1]), (int)words[2], POINTER(words[3]), (size_t)words[4], (unsigned int)words[5]);
		return true;
	case SYS_read: *result = read(fd, POINTER(words[1]), (size_t)words[2]); return true;
	case SYS_readv: *result = readv(fd, POINTER(words[1]), (int)words[2]); return true;
	default: return false;
	}
}

static bool call_of_waiting(long number, const long *words, long *result)
{
	switch (number) {
#ifdef SYS_poll
	case SYS_poll: *result = poll(POINTER(words[0]), (nfds_t)words[1], (int)words[2]); return true;
#endif
#ifdef SYS_select
	case SYS_select:
		*result = select((int)words[0], POINTER(words[1]), POINTER(words[2]), POINTER(words[3]), POINTER(words[4]));
		return true;
#endif
#ifdef SYS__newselect
	case SYS__newselect:
		*result = select((int)words[0], POINTER(words[1]), POINTER(words[2]), POINTER(words[3]), POINTER(words[4]));
		return true;
#endif
#ifdef SYS_ppoll_time64
	case SYS_ppoll_time64: *result = wait_time64(wait_ppoll, words, 2); return true;
	case SYS_pselect6_time64: *result = wait_time64(wait_pselect, words, 4); return true;
#endif
	case SYS_ppoll: *result = wait_ppoll(words); return true;
	case SYS_pselect6: *result = wait_pselect(words); return true;
#ifdef SYS_epoll_create
	case SYS_epoll_create: *result = epoll_create((int)words[0]); return true;
#endif
	case SYS_epoll_create1: *result = epoll_create1((int)words[0]); return true;
	case SYS_epoll_ctl: *result = epoll_ctl((int)words[0], (int)words[1], (int)words[2], POINTER(words[3])); return true;
#ifdef SYS_epoll_wait
	case SYS_epoll_wait: *result = epoll_wait((int)words[0], POINTER(words[1]), (int)words[2], (int)words[3]); return true;
#endif
	case SYS_epoll_pwait: *result = wait_epoll(words, false); return true;
	case SYS_epoll_pwait2: *result = wait_epoll(words, true); return true;
	default: return false;
	}
}

static bool call_of_descriptor(long number, const long *words, long *result)
{
	int fd = (int)words[0];

	switch (number) {
	case SYS_close: *result = close(fd); return true;
	case SYS_close_range: *result = close_range((unsigned int)words[0], (unsigned int)words[1], (int)words[2]); return true;
	case SYS_dup: *result = dup(fd); return true;
#ifdef SYS_dup2
	case SYS_dup2: *result = dup2(fd, (int)words[1]); return true;
#endif
	case SYS_dup3: *result = dup3(fd, (int)words[1], (int)words[2]); return true;
#ifdef SYS_fcntl64
	case SYS_fcntl64:
#endif
	case SYS_fcntl: *result = fcntl(fd, (int)words[1], POINTER(words[2])); return true;
	case SYS_ioctl: *result = ioctl(fd, (unsigned long)words[1], POINTER(words[2])); return true;
	default: return false;
	}
}

EXPORT long syscall(long number, ...)
{
	long words[ARGUMENTS], result;
	va_list arguments;

	va_start(arguments, number);
	for (int i = 0; i < ARGUMENTS; i++)
		words[i] = va_arg(arguments, long);
	va_end(arguments);
	if (number == SYS_io_uring_setup)
		return refuse_io_uring();
	calls_prepare_filter(number, words);
	if (concerns_stack(number, words) &&
	    (call_of_socket(number, words, &result) || call_of_transfer(number, words, &result) ||
	     call_of_waiting(number, words, &result) || call_of_descriptor(number, words, &result)))
		return result;
	return libc_calls()->syscall(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}
