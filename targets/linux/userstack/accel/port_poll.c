/* SPDX-License-Identifier: Apache-2.0 */
#include "port_poll.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "port_epoll.h"
#include "port_libc.h"
#include "port_parent.h"
#include "port_sockets.h"
#include "port_wait.h"

enum { SELECT_IN = POLLRDNORM | POLLIN | POLLHUP | POLLERR, SELECT_OUT = POLLWRNORM | POLLOUT | POLLERR };

struct polled {
	struct pollfd *fds; /* of the program */
	nfds_t count;
	struct pollfd *kernel; /* what of them is the kernel's */
};

static bool concerns_stack(int fd)
{
	const struct open_socket *sock = sockets_find(fd);

	return sock ? sockets_is_of_stack(sock) || sock->unasked : epoll_find(fd) != NULL;
}

bool poll_concerns_stack(const struct pollfd *fds, nfds_t count)
{
	for (nfds_t i = 0; i < count; i++) {
		if (fds[i].fd >= 0 && concerns_stack(fds[i].fd))
			return true;
	}
	return false;
}

/* What the stack says of a descriptor now. */
static short stack_events(const struct pollfd *polled)
{
	const struct open_socket *sock = polled->fd >= 0 ? sockets_find(polled->fd) : NULL;
	const struct epoll *epoll = sock || polled->fd < 0 ? NULL : epoll_find(polled->fd);
	short wanted = (short)(polled->events | POLLERR | POLLHUP);

	if (sock && sock->owner == OWNER_STACK)
		return sockets_ready(sock) & wanted;
	return epoll && epoll_has_news(epoll) ? (POLLIN | POLLRDNORM) & wanted : 0;
}

static bool any_ready(void *argument)
{
	const struct polled *polled = argument;

	for (nfds_t i = 0; i < polled->count; i++) {
		if (stack_events(&polled->fds[i]))
			return true;
	}
	return false;
}

static void abandon(void *argument)
{
	const struct polled *polled = argument;

	free(polled->kernel);
}

/* What the kernel is to be asked: nothing of a socket that the stack has alone. */
static void ask_kernel(const struct pollfd *fds, nfds_t count, struct pollfd *kernel)
{
	for (nfds_t i = 0; i < count; i++) {
		struct open_socket *sock = fds[i].fd >= 0 ? sockets_find(fds[i].fd) : NULL;

		if (sock)
			parent_use(sock, fds[i].events & ~(POLLOUT | POLLWRNORM));
		kernel[i] = fds[i];
		kernel[i].revents = 0;
		if (sock && !sockets_kernel_takes_part(sock))
			kernel[i].fd = -1;
		else if (sock && sock->owner == OWNER_STACK)
			kernel[i].events &= ~(POLLOUT | POLLWRNORM);
	}
}

int poll_wait(struct pollfd *fds, nfds_t count, uint64_t until_us, const sigset_t *mask)
{
	struct pollfd *kernel = calloc(count ? count : 1, sizeof(*kernel));
	struct polled polled = { fds, count, kernel };
	struct wait wait = {
		.done = any_ready, .abandon = abandon, .argument = &polled, .fds = kernel, .count = count, .until_us = until_us, .mask = mask,
	};
	int ready, result = 0;

	if (!kernel)
		return -ENOMEM;
	ask_kernel(fds, count, kernel);
	ready = wait_until(&wait);
	if (ready == 0) { /* the stack has something: the kernel may, too */
		const struct timespec none = { 0 };

		ready = libc_calls()->ppoll(kernel, count, &none, NULL);
	}
	for (nfds_t i = 0; i < count && (ready >= 0 || ready == -ETIMEDOUT); i++) {
		fds[i].revents = (short)((ready > 0 ? kernel[i].revents : 0) | stack_events(&fds[i]));
		result += fds[i].revents != 0;
	}
	free(kernel);
	return ready < 0 && ready != -ETIMEDOUT ? ready : result;
}

static bool is_in(int fd, const fd_set *set)
{
	return set && FD_ISSET(fd, set);
}

bool select_concerns_stack(int count, const fd_set *in, const fd_set *out, const fd_set *except)
{
	for (int fd = 0; fd < count && fd < FD_SETSIZE; fd++) {
		if ((is_in(fd, in) || is_in(fd, out) || is_in(fd, except)) && concerns_stack(fd))
			return true;
	}
	return false;
}

/* What poll(2) says unasked is not news to every set. */
static bool is_news(const struct pollfd *polled)
{
	short wanted = (short)((polled->events & POLLIN ? SELECT_IN : 0) | (polled->events & POLLOUT ? SELECT_OUT : 0) |
			       (polled->events & POLLPRI) | POLLNVAL);

	return polled->revents & wanted;
}

/* Leave in a set what came of it. */
static int answer(fd_set *set, const struct pollfd *polled, short asked, short events)
{
	int fd = polled->fd < 0 ? ~polled->fd : polled->fd;

	if (!set || !FD_ISSET(fd, set) || !(polled->events & asked))
		return 0;
	if (polled->revents & events)
		return 1;
	FD_CLR(fd, set);
	return 0;
}

int select_wait(int count, fd_set *in, fd_set *out, fd_set *except, uint64_t until_us, const sigset_t *mask)
{
	struct pollfd fds[FD_SETSIZE];
	nfds_t used = 0;
	int ready, news, result = 0;

	for (int fd = 0; fd < count && fd < FD_SETSIZE; fd++) {
		short events = (short)((is_in(fd, in) ? POLLIN : 0) | (is_in(fd, out) ? POLLOUT : 0) | (is_in(fd, except) ? POLLPRI : 0));

		if (events)
			fds[used++] = (struct pollfd){ .fd = fd, .events = events };
	}
	do {
		ready = news = poll_wait(fds, used, until_us, mask);
		for (nfds_t i = 0; i < used && ready > 0; i++) {
			if (!fds[i].revents || is_news(&fds[i]))
				continue;
			fds[i].fd = ~fds[i].fd; /* nothing more will come of it */
			news--;
		}
	} while (ready > 0 && !news);
	if (ready < 0)
		return ready;
	for (nfds_t i = 0; i < used; i++) {
		if (fds[i].revents & POLLNVAL)
			return -EBADF;
		result += answer(in, &fds[i], POLLIN, SELECT_IN) + answer(out, &fds[i], POLLOUT, SELECT_OUT) +
			  answer(except, &fds[i], POLLPRI, POLLPRI);
	}
	return result;
}
