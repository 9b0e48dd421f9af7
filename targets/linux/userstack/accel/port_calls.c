/* SPDX-License-Identifier: Apache-2.0 */
#include "port_calls.h"

#include <errno.h>

#include "base/time_units.h"
#include "port_clocks.h"
#include "port_parent.h"
#include "port_sockets.h"
#include "port_wait.h"

int64_t calls_done(int64_t result)
{
	if (result >= 0)
		return result;
	errno = (int)-result;
	return -1;
}

int64_t calls_unlock(int64_t result)
{
	wait_unlock();
	return calls_done(result);
}

struct open_socket *calls_enter_as_it_is(int fd)
{
	struct open_socket *sock = sockets_find(fd);

	if (!sock)
		return NULL;
	wait_lock();
	sock = sockets_find(fd);
	if (!sock)
		wait_unlock();
	return sock;
}

struct open_socket *calls_enter_to_send(int fd)
{
	struct open_socket *sock = calls_enter_as_it_is(fd);

	if (sock)
		parent_use(sock, false);
	return sock;
}

struct open_socket *calls_enter(int fd)
{
	struct open_socket *sock = calls_enter_as_it_is(fd);

	if (sock)
		parent_use(sock, true);
	return sock;
}

struct open_socket *calls_enter_stack(int fd)
{
	struct open_socket *sock = sockets_find(fd);

	if (!sockets_is_of_stack(sock) && !(sock && sock->unasked))
		return NULL;
	sock = calls_enter(fd);
	if (sock && sock->owner != OWNER_STACK) {
		wait_unlock();
		return NULL;
	}
	return sock;
}

struct open_socket *calls_enter_stack_to_send(int fd)
{
	struct open_socket *sock = sockets_is_of_stack(sockets_find(fd)) ? calls_enter_to_send(fd) : NULL;

	if (sock && sock->owner != OWNER_STACK) {
		wait_unlock();
		return NULL;
	}
	return sock;
}

bool calls_use_stack(int fd)
{
	bool use = calls_enter_stack(fd) != NULL;

	if (use)
		wait_unlock();
	return use;
}

uint64_t calls_until_us(const struct timespec *timeout)
{
	uint64_t us;

	if (!timeout)
		return UINT64_MAX;
	us = clocks_span_us(timeout->tv_sec, (timeout->tv_nsec + NS_PER_US - 1) / NS_PER_US);
	return us ? clocks_after_us(us) : 0;
}

bool calls_time_fits(const struct timespec *timeout)
{
	return !timeout || (timeout->tv_sec >= 0 && timeout->tv_nsec >= 0 && timeout->tv_nsec < NS_PER_S);
}

uint64_t calls_left_us(uint64_t end_us)
{
	uint64_t now_us = clocks_now_us();

	return end_us > now_us ? end_us - now_us : 0;
}
