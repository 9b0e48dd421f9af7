/* SPDX-License-Identifier: Apache-2.0 */
#include "port_control.h"

#include <errno.h>
#include <linux/net_tstamp.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#include "base/time_units.h"
#include "port_addresses.h"
#include "port_clocks.h"
#include "port_frames.h"
#include "port_interface.h"
#include "port_libc.h"
#include "port_say.h"
#include "port_sockets.h"

enum {
	/* What a socket is to tell. */
	TELL_PKTINFO4 = 1,
	TELL_PKTINFO6 = 2,
	TELL_TIMEVAL = 4,   /* SO_TIMESTAMP */
	TELL_TIMESPEC = 8,  /* SO_TIMESTAMPNS, which takes the place of SO_TIMESTAMP, as SO_TIMESTAMP does of it */
	TELL_STAMPING = 16, /* SO_TIMESTAMPING */
	TELL_STAMPS = TELL_TIMEVAL | TELL_TIMESPEC | TELL_STAMPING,

	STAMPING_OF_RECEIVED = SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE,
};

/* The options, and what each asks to be told; `clears`: what it is told instead of. */
static const struct row {
	int level, name;
	unsigned int tells, clears;
	bool of_datagrams; /* alone */
} rows[] = {
	{ IPPROTO_IP, IP_PKTINFO, TELL_PKTINFO4, TELL_PKTINFO4, true },
	{ IPPROTO_IPV6, IPV6_RECVPKTINFO, TELL_PKTINFO6, TELL_PKTINFO6, true },
	{ SOL_SOCKET, SO_TIMESTAMP, TELL_TIMEVAL, TELL_TIMEVAL | TELL_TIMESPEC, false },
	{ SOL_SOCKET, SO_TIMESTAMPNS, TELL_TIMESPEC, TELL_TIMEVAL | TELL_TIMESPEC, false },
	{ SOL_SOCKET, SO_TIMESTAMPING, TELL_STAMPING, TELL_STAMPING, false },
};

static const struct row *find(const struct open_socket *sock, int level, int name)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (rows[i].level == level && rows[i].name == name && (!rows[i].of_datagrams || sock->type == SOCK_DGRAM))
			return &rows[i];
	}
	return NULL;
}

bool control_has(const struct open_socket *sock, int level, int name, int value)
{
	const struct row *row = find(sock, level, name);

	return row && (row->tells != TELL_STAMPING || !(value & ~STAMPING_OF_RECEIVED));
}

void control_set(struct open_socket *sock, int level, int name, int value)
{
	const struct row *row = find(sock, level, name);

	if (!row)
		return;
	sock->tells &= ~row->clears;
	/* The stamp has to be both taken and told. */
	if (row->tells == TELL_STAMPING ? (value & STAMPING_OF_RECEIVED) == STAMPING_OF_RECEIVED : value != 0)
		sock->tells |= row->tells;
	if (sock->tells & TELL_STAMPS)
		frames_stamp();
}

void control_inherit(struct open_socket *sock, int fd, const struct open_socket *listener)
{
	sock->tells = listener->tells;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const int value = rows[i].tells == TELL_STAMPING ? STAMPING_OF_RECEIVED : 1;

		/* So that getsockopt(2) says the same. */
		if (sock->tells & rows[i].tells)
			libc_calls()->setsockopt(fd, rows[i].level, rows[i].name, &value, sizeof(value));
	}
}

/* Put a control message behind those that are there, cut off as the kernel does. */
static void put(struct msghdr *message, size_t *used, int level, int type, const void *data, size_t size_bytes)
{
	struct cmsghdr header = { .cmsg_len = CMSG_LEN(size_bytes), .cmsg_level = level, .cmsg_type = type };
	size_t room = message->msg_control ? message->msg_controllen - *used : 0, space = CMSG_SPACE(size_bytes);
	uint8_t *to = (uint8_t *)message->msg_control + *used;

	if (room < sizeof(header)) {
		message->msg_flags |= MSG_CTRUNC;
		return;
	}
	if (room < CMSG_LEN(size_bytes)) {
		message->msg_flags |= MSG_CTRUNC;
		header.cmsg_len = room;
	}
	memcpy(to, &header, sizeof(header));
	memcpy(to + CMSG_LEN(0), data, header.cmsg_len - CMSG_LEN(0));
	*used += space < room ? space : room;
}

static void put_stamps(const struct open_socket *sock, struct msghdr *message, size_t *used, uint64_t realtime_ns)
{
	struct timespec at = { .tv_sec = (time_t)(realtime_ns / NS_PER_S), .tv_nsec = (long)(realtime_ns % NS_PER_S) };
	struct timeval rounded = { .tv_sec = at.tv_sec, .tv_usec = (suseconds_t)(at.tv_nsec / NS_PER_US) };
	struct timespec stamping[3] = { at }; /* struct scm_timestamping: of software, an old one, of hardware */

	if (sock->tells & TELL_TIMEVAL)
		put(message, used, SOL_SOCKET, SO_TIMESTAMP, &rounded, sizeof(rounded));
	if (sock->tells & TELL_TIMESPEC)
		put(message, used, SOL_SOCKET, SO_TIMESTAMPNS, &at, sizeof(at));
	if (sock->tells & TELL_STAMPING)
		put(message, used, SOL_SOCKET, SO_TIMESTAMPING, stamping, sizeof(stamping));
}

static void put_address(const struct open_socket *sock, struct msghdr *message, size_t *used, const struct stack_address *to)
{
	struct in6_pktinfo six = { .ipi6_ifindex = interface_index(), .ipi6_addr = address_as_ipv6(to) };
	struct in_pktinfo four = { .ipi_ifindex = (int)interface_index() };

	memcpy(&four.ipi_addr, to->ip, sizeof(four.ipi_addr));
	four.ipi_spec_dst = four.ipi_addr;
	if (sock->tells & TELL_PKTINFO6)
		put(message, used, IPPROTO_IPV6, IPV6_PKTINFO, &six, sizeof(six));
	if (sock->tells & TELL_PKTINFO4 && to->family == STACK_IPV4)
		put(message, used, IPPROTO_IP, IP_PKTINFO, &four, sizeof(four));
}

void control_write(const struct open_socket *sock, struct msghdr *message)
{
	struct stack_arrival arrival = { 0 };
	size_t used = 0;

	if (sock->stack)
		stack_arrival(sock->stack, &arrival);
	if (sock->stack && sock->tells & TELL_STAMPS) /* what came before the first socket asked has the time of its reading, as by the kernel */
		put_stamps(sock, message, &used, arrival.realtime_ns ? arrival.realtime_ns : clocks_realtime_ns());
	if (arrival.to.family)
		put_address(sock, message, &used, &arrival.to);
	message->msg_controllen = used;
}

/* One control message of a datagram that is sent. */
static int read_one(const struct open_socket *sock, const struct cmsghdr *header, struct control_way *way)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6 };
	struct sockaddr_in four = { .sin_family = AF_INET };
	struct in6_pktinfo info6;
	struct in_pktinfo info4;

	if (header->cmsg_level == IPPROTO_IP && header->cmsg_type == IP_PKTINFO) {
		if (header->cmsg_len != CMSG_LEN(sizeof(info4)))
			return -EINVAL;
		memcpy(&info4, CMSG_DATA(header), sizeof(info4));
		four.sin_addr = info4.ipi_spec_dst;
		way->interface_index = (uint32_t)info4.ipi_ifindex;
		way->from = (struct stack_address){ 0 };
		return info4.ipi_spec_dst.s_addr ? address_from_sockaddr((const struct sockaddr *)&four, sizeof(four), &way->from) : 0;
	}
	if (sock->domain == AF_INET6 && header->cmsg_level == IPPROTO_IPV6 && header->cmsg_type == IPV6_PKTINFO) {
		if (header->cmsg_len < CMSG_LEN(sizeof(info6)))
			return -EINVAL;
		memcpy(&info6, CMSG_DATA(header), sizeof(info6));
		six.sin6_addr = info6.ipi6_addr;
		way->interface_index = info6.ipi6_ifindex;
		way->from = (struct stack_address){ 0 };
		return IN6_IS_ADDR_UNSPECIFIED(&info6.ipi6_addr) ?
			       0 : address_from_sockaddr((const struct sockaddr *)&six, sizeof(six), &way->from);
	}
	say("control message %d of level %d with what is sent is not supported", header->cmsg_type, header->cmsg_level);
	return -EOPNOTSUPP;
}

int control_read(const struct open_socket *sock, const struct msghdr *message, struct control_way *way)
{
	size_t at = 0, whole = message->msg_control ? message->msg_controllen : 0;

	*way = (struct control_way){ 0 };
	while (whole - at >= sizeof(struct cmsghdr)) {
		const struct cmsghdr *header = (const void *)((const uint8_t *)message->msg_control + at);
		size_t space;
		int err;

		if (header->cmsg_len < sizeof(*header) || header->cmsg_len > whole - at)
			return -EINVAL;
		err = read_one(sock, header, way);
		if (err)
			return err;
		space = CMSG_SPACE(header->cmsg_len - CMSG_LEN(0));
		at += space < whole - at ? space : whole - at;
	}
	return 0;
}
