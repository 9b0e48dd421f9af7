/* SPDX-License-Identifier: Apache-2.0 */
#include "port_options.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>

#include "port_clocks.h"
#include "port_control.h"
#include "port_engine.h"
#include "port_libc.h"
#include "port_say.h"
#include "port_sockets.h"
#include "port_tcp_info.h"

enum { ANY = 0, STREAM = SOCK_STREAM };

/* Options of one number that the stack has. */
static const struct row {
	int level, name, type; /* type: of the sockets that have it */
	enum stack_option option;
} rows[] = {
	{ SOL_SOCKET, SO_REUSEADDR, ANY, STACK_REUSE_ADDRESS },
	{ SOL_SOCKET, SO_KEEPALIVE, STREAM, STACK_KEEP_ALIVE },
	{ SOL_SOCKET, SO_SNDBUF, ANY, STACK_SEND_BYTES },
	{ SOL_SOCKET, SO_SNDBUFFORCE, ANY, STACK_SEND_BYTES },
	{ SOL_SOCKET, SO_RCVBUF, ANY, STACK_RECEIVE_BYTES },
	{ SOL_SOCKET, SO_RCVBUFFORCE, ANY, STACK_RECEIVE_BYTES },
	{ IPPROTO_TCP, TCP_NODELAY, STREAM, STACK_NO_DELAY },
	{ IPPROTO_TCP, TCP_KEEPIDLE, STREAM, STACK_KEEP_IDLE_S },
	{ IPPROTO_TCP, TCP_KEEPINTVL, STREAM, STACK_KEEP_INTERVAL_S },
	{ IPPROTO_TCP, TCP_KEEPCNT, STREAM, STACK_KEEP_COUNT },
	{ IPPROTO_TCP, TCP_USER_TIMEOUT, STREAM, STACK_USER_TIMEOUT_MS },
	{ IPPROTO_TCP, TCP_MAXSEG, STREAM, STACK_SEGMENT_BYTES },
	{ IPPROTO_IP, IP_TOS, ANY, STACK_TYPE_OF_SERVICE },
	{ IPPROTO_IPV6, IPV6_TCLASS, ANY, STACK_TYPE_OF_SERVICE },
	{ IPPROTO_IPV6, IPV6_V6ONLY, ANY, STACK_ONLY_IPV6 },
};

/* Options that only say how the kernel is to go about it: what a program sees is the same without them. */
static const struct { int level, name; } hints[] = {
	{ SOL_SOCKET, SO_PRIORITY }, { SOL_SOCKET, SO_BUSY_POLL }, { SOL_SOCKET, SO_PREFER_BUSY_POLL },
	{ SOL_SOCKET, SO_BUSY_POLL_BUDGET }, { SOL_SOCKET, SO_INCOMING_CPU }, { SOL_SOCKET, SO_BROADCAST },
	{ IPPROTO_TCP, TCP_QUICKACK }, { IPPROTO_TCP, TCP_DEFER_ACCEPT },
	{ IPPROTO_TCP, TCP_CORK }, { IPPROTO_TCP, TCP_FASTOPEN }, { IPPROTO_TCP, TCP_CONGESTION },
	{ IPPROTO_TCP, TCP_NOTSENT_LOWAT }, { IPPROTO_TCP, TCP_WINDOW_CLAMP }, { IPPROTO_IP, IP_MTU_DISCOVER },
	{ IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT }, { IPPROTO_IPV6, IPV6_MTU_DISCOVER },
};

/* Options of groups, which the kernel's part of a socket of UDP has: datagrams to and from them go by it. */
static const struct { int level, name; } of_groups[] = {
	{ IPPROTO_IP, IP_MULTICAST_IF }, { IPPROTO_IP, IP_MULTICAST_TTL }, { IPPROTO_IP, IP_MULTICAST_LOOP },
	{ IPPROTO_IP, IP_MULTICAST_ALL }, { IPPROTO_IP, IP_ADD_MEMBERSHIP }, { IPPROTO_IP, IP_DROP_MEMBERSHIP },
	{ IPPROTO_IP, IP_ADD_SOURCE_MEMBERSHIP }, { IPPROTO_IP, IP_DROP_SOURCE_MEMBERSHIP },
	{ IPPROTO_IP, MCAST_JOIN_GROUP }, { IPPROTO_IP, MCAST_LEAVE_GROUP },
	{ IPPROTO_IP, MCAST_JOIN_SOURCE_GROUP }, { IPPROTO_IP, MCAST_LEAVE_SOURCE_GROUP },
	{ IPPROTO_IPV6, IPV6_MULTICAST_IF }, { IPPROTO_IPV6, IPV6_MULTICAST_HOPS }, { IPPROTO_IPV6, IPV6_MULTICAST_LOOP },
	{ IPPROTO_IPV6, IPV6_MULTICAST_ALL }, { IPPROTO_IPV6, IPV6_ADD_MEMBERSHIP }, { IPPROTO_IPV6, IPV6_DROP_MEMBERSHIP },
	{ IPPROTO_IPV6, MCAST_JOIN_GROUP }, { IPPROTO_IPV6, MCAST_LEAVE_GROUP },
	{ IPPROTO_IPV6, MCAST_JOIN_SOURCE_GROUP }, { IPPROTO_IPV6, MCAST_LEAVE_SOURCE_GROUP },
};

static const struct row *find(const struct open_socket *sock, int level, int name)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (rows[i].level == level && rows[i].name == name && (rows[i].type == ANY || rows[i].type == sock->type))
			return &rows[i];
	}
	return NULL;
}

/* Where a size is kept that the program sets: the kernel's own cannot be told from it, and sizes are the stack's own unless the program
 * has set them. NULL: the option is not a size. */
static int *kept_size(struct open_socket *sock, enum stack_option option)
{
	switch (option) {
	case STACK_SEND_BYTES: return &sock->send_bytes;
	case STACK_RECEIVE_BYTES: return &sock->receive_bytes;
	case STACK_SEGMENT_BYTES: return &sock->segment_bytes;
	default: return NULL;
	}
}

/* Note what the program has set. 0 is the least of a buffer, and no bound of segments. */
static void note_set(struct open_socket *sock, int level, int name, int value)
{
	const struct row *row = find(sock, level, name);
	int *kept = row ? kept_size(sock, row->option) : NULL;

	if (row)
		sock->options_set |= 1u << (row - rows);
	if (kept)
		*kept = value > 0 || row->option == STACK_SEGMENT_BYTES ? value : 1;
}

static bool is_hint(int level, int name)
{
	for (size_t i = 0; i < sizeof(hints) / sizeof(hints[0]); i++) {
		if (hints[i].level == level && hints[i].name == name)
			return true;
	}
	return false;
}

static bool is_of_groups(const struct open_socket *sock, int level, int name)
{
	for (size_t i = 0; sock->both && sock->type == SOCK_DGRAM && i < sizeof(of_groups) / sizeof(of_groups[0]); i++) {
		if (of_groups[i].level == level && of_groups[i].name == name)
			return true;
	}
	return false;
}

/* By the option's number: a time of the caller's own size, or, where that has 32 bits, one of 64. */
static bool is_timeout(int level, int name)
{
	return level == SOL_SOCKET && (name == SO_RCVTIMEO_OLD || name == SO_SNDTIMEO_OLD || name == SO_RCVTIMEO_NEW || name == SO_SNDTIMEO_NEW);
}

static int set_timeout(struct open_socket *sock, int name, const void *value, socklen_t length)
{
	bool is_new = name == SO_RCVTIMEO_NEW || name == SO_SNDTIMEO_NEW;
	uint64_t *timeout_us = name == SO_RCVTIMEO_OLD || name == SO_RCVTIMEO_NEW ? &sock->receive_us : &sock->send_us;
	int64_t wide[2]; /* seconds and microseconds */
	long native[2];

	if (length < (socklen_t)(is_new ? sizeof(wide) : sizeof(native)))
		return -EINVAL;
	if (is_new) {
		memcpy(wide, value, sizeof(wide));
	} else {
		memcpy(native, value, sizeof(native));
		wide[0] = native[0];
		wide[1] = native[1];
	}
	*timeout_us = clocks_span_us(wide[0], wide[1]);
	if (wide[0] < 0)
		*timeout_us = 1; /* at once, as the kernel has it; 0 is without end */
	return 0;
}

static bool is_off(const void *value, socklen_t length)
{
	const uint8_t *bytes = value;

	for (socklen_t i = 0; i < length; i++) {
		if (bytes[i])
			return false;
	}
	return true;
}

static int number_of(const void *value, socklen_t length)
{
	int number = 0;

	if (value)
		memcpy(&number, value, length < (socklen_t)sizeof(number) ? length : sizeof(number));
	return number;
}

/* What the kernel takes a value for that it has taken: of a type of service the last byte, or none. */
static int taken(const struct row *row, int value)
{
	if (row->option != STACK_TYPE_OF_SERVICE)
		return value;
	return row->level == IPPROTO_IPV6 && value == -1 ? 0 : value & UINT8_MAX;
}

/* Of a socket that the stack has; the kernel's has taken the value. */
static int set_in_stack(struct open_socket *sock, int level, int name, const void *value, socklen_t length)
{
	const struct row *row = find(sock, level, name);
	struct linger linger;
	int err;

	if (level == SOL_SOCKET && name == SO_LINGER && length >= (socklen_t)sizeof(linger)) {
		memcpy(&linger, value, sizeof(linger));
		return stack_set(sock->stack, STACK_LINGER_S, linger.l_onoff ? linger.l_linger : -1);
	}
	if (!row)
		return -ENOPROTOOPT;
	err = stack_set(sock->stack, row->option, taken(row, number_of(value, length)));
	return sock->listens ? 0 : err; /* its connections have it, the listener itself has no use for it */
}

/* Name an option that is not the stack's; one of a number may be so with other values. */
static void say_unfit(int level, int name, const void *value, socklen_t length, const char *consequence)
{
	char given[32] = "";

	if (length == (socklen_t)sizeof(int))
		snprintf(given, sizeof(given), " with the value %d", number_of(value, length));
	say("option %d of level %d%s is not supported%s", name, level, given, consequence);
}

int options_set(struct open_socket *sock, int fd, int level, int name, const void *value, socklen_t length)
{
	bool tells = control_has(sock, level, name, number_of(value, length));
	bool fit = find(sock, level, name) || is_hint(level, name) || tells || (level == SOL_SOCKET && name == SO_LINGER);

	if ((int)length < 0 || (level == SOL_SOCKET && name != SO_BINDTODEVICE && length < (socklen_t)sizeof(int)))
		return -EINVAL;
	if (sock->owner == OWNER_STACK && !fit && !is_timeout(level, name) && !is_of_groups(sock, level, name) && !is_off(value, length)) {
		say_unfit(level, name, value, length, "");
		return -ENOPROTOOPT;
	}
	if (sock->owner == OWNER_RELAYED && level != SOL_SOCKET)
		return fit ? 0 : -ENOPROTOOPT; /* the parent has set them, or not */
	if (libc_calls()->setsockopt(fd, level, name, value, length))
		return -errno;
	if (is_timeout(level, name))
		return set_timeout(sock, name, value, length);
	if (sock->owner == OWNER_UNDECIDED && !fit && !is_off(value, length)) {
		say_unfit(level, name, value, length, ": the kernel's stack has the socket");
		sock->unfit = true;
	}
	control_set(sock, level, name, number_of(value, length));
	note_set(sock, level, name, number_of(value, length));
	if (sock->owner != OWNER_STACK || is_hint(level, name) || tells || !fit)
		return 0;
	return set_in_stack(sock, level, name, value, length);
}

int options_set_async(struct open_socket *sock)
{
	const char *what = "signals when a socket is ready (O_ASYNC) are not supported";

	if (sockets_is_of_stack(sock)) {
		say("%s", what);
		return -EINVAL;
	}
	if (sock->owner == OWNER_UNDECIDED) {
		say("%s: the kernel's stack has the socket", what);
		sock->unfit = true;
	}
	return 0;
}

/* Of rows for the same at either family, the one of the socket's. */
static bool is_of(const struct row *row, const struct open_socket *sock)
{
	if (row->type != ANY && row->type != sock->type)
		return false;
	if (row->option == STACK_TYPE_OF_SERVICE)
		return row->level == (sock->domain == AF_INET6 ? IPPROTO_IPV6 : IPPROTO_IP);
	return row->level != IPPROTO_IPV6 || sock->domain == AF_INET6;
}

void options_copy(struct open_socket *sock, int fd)
{
	struct linger linger;
	socklen_t length = sizeof(linger);

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *row = &rows[i];
		const int *kept = kept_size(sock, row->option);
		int value = kept ? *kept : 0;

		length = sizeof(value);
		if (is_of(row, sock) && (kept ? value : !libc_calls()->getsockopt(fd, row->level, row->name, &value, &length)))
			stack_set(sock->stack, row->option, value);
	}
	length = sizeof(linger);
	if (libc_calls()->getsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, &length) == 0 && linger.l_onoff)
		stack_set(sock->stack, STACK_LINGER_S, linger.l_linger);
}

/* Give a socket of the kernel the value that another one has. */
static void take_over(int fd, int from, int level, int name)
{
	int64_t value[2];
	socklen_t length = sizeof(value);

	if (libc_calls()->getsockopt(from, level, name, value, &length) == 0)
		libc_calls()->setsockopt(fd, level, name, value, length);
}

void options_inherit(struct open_socket *sock, int fd, const struct open_socket *listener)
{
	static const int of_all[] = { SO_LINGER, SO_RCVTIMEO_NEW, SO_SNDTIMEO_NEW };

	sock->options_set = listener->options_set;
	sock->send_bytes = listener->send_bytes;
	sock->receive_bytes = listener->receive_bytes;
	sock->segment_bytes = listener->segment_bytes;
	sock->receive_us = listener->receive_us;
	sock->send_us = listener->send_us;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const int *kept = kept_size(sock, rows[i].option);

		if (!(sock->options_set & (1u << i)))
			continue;
		if (kept) /* the kernel says more than was set */
			libc_calls()->setsockopt(fd, rows[i].level, rows[i].name, kept, sizeof(*kept));
		else
			take_over(fd, listener->fd, rows[i].level, rows[i].name);
	}
	for (size_t i = 0; i < sizeof(of_all) / sizeof(of_all[0]); i++)
		take_over(fd, listener->fd, SOL_SOCKET, of_all[i]);
	options_copy(sock, fd);
}

static int answer(void *value, socklen_t *length, const void *own, socklen_t own_bytes)
{
	socklen_t size = *length < own_bytes ? *length : own_bytes;

	memcpy(value, own, size);
	*length = size;
	return 0;
}

/* What a socket is, where the kernel would speak of the one behind it: that need not listen, or is a local one. */
static bool names_itself(const struct open_socket *sock, int level, int name, int *number)
{
	if (sock->owner == OWNER_UNDECIDED || sock->owner == OWNER_KERNEL || level != SOL_SOCKET)
		return false;
	switch (name) {
	case SO_DOMAIN: *number = sock->domain; return true;
	case SO_TYPE: *number = sock->type; return true;
	case SO_PROTOCOL: *number = sock->protocol; return true;
	case SO_ACCEPTCONN: *number = sock->listens; return true;
	default: return false;
	}
}

int options_get(struct open_socket *sock, int fd, int level, int name, void *value, socklen_t *length)
{
	int number;

	if ((int)*length < 0)
		return libc_calls()->getsockopt(fd, level, name, value, length) ? -errno : 0;
	if (names_itself(sock, level, name, &number))
		return answer(value, length, &number, sizeof(number));
	if (sock->owner == OWNER_STACK && level == SOL_SOCKET && name == SO_ERROR) {
		number = engine_is_gone() ? ENETDOWN : stack_take_error(sock->stack);
		number = number ? number : stack_take_soft_error(sock->stack);
		return answer(value, length, &number, sizeof(number));
	}
	if (sock->owner == OWNER_STACK && level == IPPROTO_TCP && name == TCP_INFO)
		return tcp_info_get(sock->stack, fd, value, length);
	if (sock->owner == OWNER_STACK && level == IPPROTO_TCP && name == TCP_MAXSEG && stack_get(sock->stack, STACK_SEGMENT_BYTES, &number) == 0)
		return answer(value, length, &number, sizeof(number));
	return libc_calls()->getsockopt(fd, level, name, value, length) ? -errno : 0;
}
