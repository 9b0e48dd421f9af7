/* SPDX-License-Identifier: Apache-2.0 */
#include "port_transfer.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "port_addresses.h"
#include "port_control.h"
#include "port_engine.h"
#include "port_interface.h"
#include "port_libc.h"
#include "port_say.h"
#include "port_sockets.h"
#include "port_wait.h"
#include "port_ways.h"

enum {
	DATAGRAM_MAX_BYTES = 65536,
};

struct waiting {
	struct open_socket *sock;
	unsigned int ready; /* of stack_ready(): what it waits for */
	size_t bytes;       /* so many are to be there; 0: any number */
};

static bool has_come(void *argument)
{
	const struct waiting *waiting = argument;
	unsigned int ready;

	if (engine_is_gone() || !waiting->sock->stack)
		return true;
	ready = stack_ready(waiting->sock->stack);
	if (waiting->bytes && !(ready & (STACK_ERROR | STACK_HUNG_UP | STACK_PEER_CLOSED)))
		return stack_waiting_bytes(waiting->sock->stack) >= waiting->bytes;
	return ready & (waiting->ready | STACK_ERROR | STACK_HUNG_UP);
}

static void abandon(void *argument)
{
	const struct waiting *waiting = argument;

	sockets_release(waiting->sock); /* the call holds it */
}

/* Until when a call waits, which has a timeout: not at all if it does not block. */
static uint64_t waits_until_us(const struct open_socket *sock, int flags, uint64_t timeout_us)
{
	return sock->nonblocking || flags & MSG_DONTWAIT ? 0 : sockets_until_us(timeout_us);
}

/*
 * Wait for what a socket is to be ready for; after handlers with SA_RESTART, too, unless it has a timeout or has `begun` to transfer.
 * @return 0, 1: its kernel's socket can be read; or -errno
 */
static int wait_for_bytes(struct open_socket *sock, int fd, unsigned int ready, size_t bytes, uint64_t until_us, bool begun)
{
	struct waiting waiting = { sock, ready, bytes };
	struct pollfd kernel = { .fd = fd, .events = POLLIN };
	struct wait wait = {
		.done = has_come, .abandon = abandon, .argument = &waiting, .fds = &kernel, .until_us = until_us,
		.count = sock->both && ready == STACK_READABLE ? 1 : 0, .restarts = until_us == UINT64_MAX && !begun,
	};
	int err = wait_until(&wait);

	if (err == -ETIMEDOUT)
		return -EAGAIN;
	return engine_is_gone() || !sock->stack ? -ENETDOWN : err;
}

static int wait_for(struct open_socket *sock, int fd, unsigned int ready, uint64_t until_us, bool begun)
{
	return wait_for_bytes(sock, fd, ready, 0, until_us, begun);
}

static size_t length_of(const struct msghdr *message)
{
	size_t length = 0;

	for (size_t i = 0; i < message->msg_iovlen; i++)
		length += message->msg_iov[i].iov_len;
	return length;
}

static int64_t send_stream(struct open_socket *sock, int fd, const struct msghdr *message, int flags)
{
	uint64_t until_us = waits_until_us(sock, flags, sock->send_us);
	size_t left = length_of(message);
	int64_t sent = 0;

	if (!left) /* it says whether anything could be sent */
		return stack_send(sock->stack, NULL, 0, 0, NULL);
	for (size_t i = 0; i < message->msg_iovlen; i++) {
		const struct iovec *part = &message->msg_iov[i];
		bool more;

		left -= part->iov_len;
		more = (flags & MSG_MORE) || left; /* parts that are empty are not more */
		for (size_t at = 0; at < part->iov_len;) {
			int64_t taken = stack_send(sock->stack, (const uint8_t *)part->iov_base + at, part->iov_len - at,
						   more ? STACK_MORE : 0, NULL);

			if (taken == -EAGAIN)
				taken = wait_for(sock, fd, STACK_WRITABLE, until_us, sent > 0);
			if (taken < 0)
				return sent ? sent : taken;
			at += (size_t)taken;
			sent += taken;
		}
	}
	return sent;
}

/* Send a datagram that is in one piece; `from`: an address of its own choice, or none. */
static int64_t send_whole(struct open_socket *sock, const void *data, size_t size_bytes, const struct stack_address *from,
			  const struct stack_address *to)
{
	return from->family ? stack_send_from(sock->stack, data, size_bytes, from, to) : stack_send(sock->stack, data, size_bytes, 0, to);
}

static int64_t send_datagram(struct open_socket *sock, const struct msghdr *message, int flags, const struct stack_address *from,
			     const struct stack_address *to)
{
	size_t length = length_of(message), at = 0;
	uint8_t *joined;
	int64_t sent;

	if (flags & MSG_PROXY) /* the kernel's MSG_PROBE: nothing is sent */
		return (int64_t)length;
	if (message->msg_iovlen == 1)
		return send_whole(sock, message->msg_iov[0].iov_base, length, from, to);
	if (length > DATAGRAM_MAX_BYTES)
		return -EMSGSIZE;
	joined = malloc(length + 1);
	if (!joined)
		return -ENOMEM;
	for (size_t i = 0; i < message->msg_iovlen; i++) {
		if (message->msg_iov[i].iov_len)
			memcpy(joined + at, message->msg_iov[i].iov_base, message->msg_iov[i].iov_len);
		at += message->msg_iov[i].iov_len;
	}
	sent = send_whole(sock, joined, length, from, to);
	free(joined);
	return sent;
}

/* Whether what a datagram asks for leads past the user-mode stack. @return 1: by the kernel, 0: not, or -errno */
static int leads_past(const struct open_socket *sock, const struct control_way *way)
{
	bool other = way->interface_index && way->interface_index != interface_index();

	if (!other && (!way->from.family || interface_has_address(&way->from)))
		return 0;
	return sock->both ? 1 : -EINVAL;
}

int64_t transfer_send(struct open_socket *sock, int fd, const struct msghdr *message, int flags)
{
	struct stack_address to;
	struct control_way way;
	int by_kernel, err;

	if (engine_is_gone())
		return -ENETDOWN;
	if (flags & MSG_OOB || (sock->type == SOCK_STREAM && flags & MSG_FASTOPEN))
		return -EOPNOTSUPP; /* others have no effect, or are unknown: the kernel ignores them, too */
	if (message->msg_iovlen > IOV_MAX)
		return -EMSGSIZE;
	if (sock->type == SOCK_DGRAM && flags & MSG_MORE) {
		say("datagrams of several calls (MSG_MORE) are not supported");
		return -EOPNOTSUPP;
	}
	if (sock->type == SOCK_STREAM && message->msg_controllen) {
		say("control messages with what is sent are not supported");
		return -EOPNOTSUPP;
	}
	if (sock->type == SOCK_STREAM) /* an address is ignored, as the kernel does */
		return send_stream(sock, fd, message, flags);
	err = control_read(sock, message, &way);
	err = err ? err : leads_past(sock, &way);
	if (err < 0)
		return err;
	if (!message->msg_name) /* it is connected: the kernel's socket is not */
		return err ? -EINVAL : send_datagram(sock, message, flags, &way.from, NULL);
	by_kernel = err;
	err = address_from_sockaddr(message->msg_name, message->msg_namelen, &to);
	if (err)
		return err;
	err = by_kernel ? by_kernel : ways_datagram_goes_by_kernel(sock, fd, &to);
	if (err > 0)
		return libc_calls()->sendmsg(fd, message, flags | MSG_DONTWAIT) < 0 ? -errno : (int64_t)length_of(message);
	return err ? err : send_datagram(sock, message, flags, &way.from, &to);
}

static unsigned int stack_flags(int flags)
{
	return (flags & MSG_PEEK ? STACK_PEEK : 0u) | STACK_TRUNCATE;
}

/* Lay what is in one piece where the parts of a message lie. */
static void spread(const struct msghdr *message, const uint8_t *joined, size_t length)
{
	size_t at = 0;

	for (size_t i = 0; i < message->msg_iovlen && at < length; i++) {
		size_t left = length - at, here = message->msg_iov[i].iov_len < left ? message->msg_iov[i].iov_len : left;

		if (here)
			memcpy(message->msg_iov[i].iov_base, joined + at, here);
		at += here;
	}
}

/* Look at what is there now, over all parts; with MSG_TRUNC only how much it is. */
static int64_t peek_stream(const struct open_socket *sock, const struct msghdr *message, int flags)
{
	size_t length = length_of(message), waiting = stack_waiting_bytes(sock->stack);
	uint8_t *joined;
	int64_t size;

	if (length > waiting)
		length = waiting ? waiting : 1; /* of none it says why */
	joined = malloc(length + 1);
	if (!joined)
		return -ENOMEM;
	size = stack_receive(sock->stack, joined, length, STACK_PEEK, NULL);
	if (size > 0 && !(flags & MSG_TRUNC))
		spread(message, joined, (size_t)size);
	free(joined);
	return size;
}

/* Take bytes off a stream; with MSG_TRUNC nobody gets them. */
static int64_t take_piece(const struct open_socket *sock, uint8_t *data, size_t size, int flags)
{
	uint8_t nobodys[4096];
	size_t taken = 0, asked;
	int64_t piece;

	if (!(flags & MSG_TRUNC))
		return stack_receive(sock->stack, data, size, 0, NULL);
	do {
		asked = size - taken < sizeof(nobodys) ? size - taken : sizeof(nobodys);
		piece = stack_receive(sock->stack, nobodys, asked, 0, NULL);
		taken += piece > 0 ? (size_t)piece : 0;
	} while (piece == (int64_t)asked && taken < size);
	return taken ? (int64_t)taken : piece;
}

/* What is there now, over all parts. */
static int64_t take_stream(struct open_socket *sock, const struct msghdr *message, size_t skip, int flags)
{
	int64_t received = 0;

	for (size_t i = 0; i < message->msg_iovlen; i++) {
		const struct iovec *part = &message->msg_iov[i];
		size_t at = skip < part->iov_len ? skip : part->iov_len;
		int64_t size;

		skip -= at;
		if (at == part->iov_len && (part->iov_len || message->msg_iovlen > 1))
			continue;
		size = take_piece(sock, (uint8_t *)part->iov_base + at, part->iov_len - at, flags);
		if (size < 0)
			return received ? received : size;
		received += size;
		if (at + (size_t)size < part->iov_len)
			break;
	}
	return received;
}

/* Look at a stream once all that was asked for has come. */
static int64_t peek_all(struct open_socket *sock, int fd, const struct msghdr *message, int flags, uint64_t until_us)
{
	int err = wait_for_bytes(sock, fd, STACK_READABLE, length_of(message), until_us, false);
	int64_t size = err == -ENETDOWN ? err : peek_stream(sock, message, flags);

	return size == -EAGAIN && err < 0 ? err : size;
}

static int64_t receive_stream(struct open_socket *sock, int fd, const struct msghdr *message, int flags)
{
	uint64_t until_us = waits_until_us(sock, flags, sock->receive_us);
	size_t length = length_of(message), received = 0;

	if (flags & MSG_PEEK && flags & MSG_WAITALL)
		return peek_all(sock, fd, message, flags, until_us);
	for (;;) {
		int64_t size = flags & MSG_PEEK || !length ? peek_stream(sock, message, flags) : take_stream(sock, message, received, flags);

		if (size > 0)
			received += (size_t)size;
		if (size == 0 || (size > 0 && (received == length || !(flags & MSG_WAITALL))))
			return (int64_t)received;
		if (size < 0 && size != -EAGAIN)
			return received ? (int64_t)received : size;
		size = wait_for(sock, fd, STACK_READABLE, until_us, received > 0);
		if (size < 0)
			return received ? (int64_t)received : size;
	}
}

/* Take a datagram apart to where the parts of a message lie. @return its length */
static int64_t take_datagram(struct open_socket *sock, const struct msghdr *message, int flags, struct stack_address *from)
{
	uint8_t *joined;
	int64_t length;

	if (message->msg_iovlen == 1)
		return stack_receive(sock->stack, message->msg_iov[0].iov_base, message->msg_iov[0].iov_len, stack_flags(flags), from);
	joined = malloc(DATAGRAM_MAX_BYTES);
	if (!joined)
		return -ENOMEM;
	length = stack_receive(sock->stack, joined, DATAGRAM_MAX_BYTES, stack_flags(flags), from);
	if (length > 0)
		spread(message, joined, (size_t)length);
	free(joined);
	return length;
}

static int64_t receive_datagram(struct open_socket *sock, int fd, struct msghdr *message, int flags)
{
	uint64_t until_us = waits_until_us(sock, flags, sock->receive_us);
	size_t room = length_of(message);

	for (;;) {
		struct stack_address from;
		int64_t length = take_datagram(sock, message, flags, &from);
		int ready;

		if (length >= 0) {
			address_to_sockaddr(sock->domain, &from, message->msg_name, &message->msg_namelen);
			message->msg_flags |= (size_t)length > room ? MSG_TRUNC : 0;
			control_write(sock, message);
			return (size_t)length > room && !(flags & MSG_TRUNC) ? (int64_t)room : length;
		}
		if (length != -EAGAIN)
			return length;
		ready = wait_for(sock, fd, STACK_READABLE, until_us, false);
		if (ready > 0) {
			ssize_t by_kernel = libc_calls()->recvmsg(fd, message, flags | MSG_DONTWAIT);

			if (by_kernel >= 0 || errno != EAGAIN)
				return by_kernel < 0 ? -errno : by_kernel;
		} else if (ready < 0) {
			return ready;
		}
	}
}

int64_t transfer_receive(struct open_socket *sock, int fd, struct msghdr *message, int flags)
{
	int64_t received;

	if (engine_is_gone())
		return -ENETDOWN;
	if (flags & MSG_ERRQUEUE)
		return -EAGAIN; /* nothing is ever put there */
	if (flags & MSG_OOB && sock->type == SOCK_STREAM)
		return -EINVAL;
	if (message->msg_iovlen > IOV_MAX)
		return -EMSGSIZE;
	message->msg_flags = flags & MSG_CMSG_CLOEXEC;
	if (sock->type == SOCK_STREAM) {
		received = receive_stream(sock, fd, message, flags);
		message->msg_namelen = 0;
		if (received > 0)
			control_write(sock, message);
		else if (received == 0)
			message->msg_controllen = 0;
	} else {
		received = receive_datagram(sock, fd, message, flags);
	}
	return received;
}
