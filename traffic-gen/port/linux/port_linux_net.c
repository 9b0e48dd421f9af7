/* SPDX-License-Identifier: Apache-2.0 */
/* Port layer for Linux: sockets and kernel stamps. */
#define _GNU_SOURCE
#include "port/port.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/time_units.h"

enum { CONTROL_BYTES = 256, JOINED_MAX_BYTES = 512 };

/* Control buffers hold headers that must be aligned. */
union control {
	struct cmsghdr header;
	unsigned char bytes[CONTROL_BYTES];
};

/* An address as system calls have it. */
struct sys_address {
	union {
		struct sockaddr any;
		struct sockaddr_in four;
		struct sockaddr_in6 six;
	};
	socklen_t bytes;
};

static struct sys_address to_sys(const struct address *address)
{
	struct sys_address sys = { .six = { .sin6_family = AF_INET6, .sin6_port = htons(address->port) }, .bytes = sizeof(sys.six) };

	if (address->is_ipv6) {
		memcpy(&sys.six.sin6_addr, address->ipv6, sizeof(address->ipv6));
		return sys;
	}
	return (struct sys_address){
		.four = { .sin_family = AF_INET, .sin_port = htons(address->port), .sin_addr.s_addr = htonl(address->ipv4) },
		.bytes = sizeof(sys.four),
	};
}

static struct address from_sys(const struct sys_address *sys)
{
	struct address address = { .port = ntohs(sys->six.sin6_port), .is_ipv6 = true };

	if (sys->any.sa_family != AF_INET6)
		return (struct address){ .ipv4 = ntohl(sys->four.sin_addr.s_addr), .port = ntohs(sys->four.sin_port) };
	memcpy(address.ipv6, &sys->six.sin6_addr, sizeof(address.ipv6));
	return address;
}

static int set_option(port_socket sock, int level, int name, int value)
{
	return setsockopt((int)sock, level, name, &value, sizeof(value)) ? -errno : 0;
}

/* Open a non-blocking socket and bind it. */
static int open_bound(int type, const struct address *local, bool reuse, int *fd_out)
{
	struct sys_address sys = to_sys(local);
	int fd = socket(sys.any.sa_family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int err;

	if (fd < 0)
		return -errno;
	err = reuse ? set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1) : 0;
	if (!err && local->is_ipv6)
		err = set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
	if (!err && bind(fd, &sys.any, sys.bytes))
		err = -errno;
	if (err) {
		close(fd);
		return err;
	}
	*fd_out = fd;
	return 0;
}

int port_udp_open(const struct address *local, port_socket *socket_out)
{
	int fd, err = open_bound(SOCK_DGRAM, local, false, &fd);

	if (!err)
		*socket_out = fd;
	return err;
}

int port_udp_connect(port_socket sock, const struct address *peer)
{
	struct sys_address sys = to_sys(peer);

	return connect((int)sock, &sys.any, sys.bytes) ? -errno : 0;
}

int port_tcp_listen(const struct address *local, int backlog, port_socket *socket_out)
{
	int fd, err = open_bound(SOCK_STREAM, local, true, &fd);

	if (err)
		return err;
	if (listen(fd, backlog)) {
		err = -errno;
		close(fd);
		return err;
	}
	*socket_out = fd;
	return 0;
}

int port_tcp_accept(port_socket listener, port_socket *socket_out, struct address *source)
{
	struct sys_address sys = { .bytes = sizeof(sys.six) };
	int fd = accept4((int)listener, &sys.any, &sys.bytes, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd < 0)
		return errno == EWOULDBLOCK || errno == ECONNABORTED ? -EAGAIN : -errno;
	*source = from_sys(&sys);
	*socket_out = fd;
	return 0;
}

int port_tcp_connect(const struct address *local, const struct address *peer, port_socket *socket_out)
{
	struct sys_address sys = to_sys(peer);
	int fd, err = open_bound(SOCK_STREAM, local, true, &fd);

	if (err)
		return err;
	if (connect(fd, &sys.any, sys.bytes)) {
		err = -errno;
		if (err != -EINPROGRESS) {
			close(fd);
			return err;
		}
	}
	*socket_out = fd;
	return err;
}

int port_tcp_connect_result(port_socket sock)
{
	int err = 0;
	socklen_t length = sizeof(err);

	if (getsockopt((int)sock, SOL_SOCKET, SO_ERROR, &err, &length))
		return -errno;
	return -err;
}

void port_tcp_shutdown_input(port_socket sock)
{
	shutdown((int)sock, SHUT_RD);
}

void port_socket_close(port_socket sock)
{
	close((int)sock);
}

void port_socket_abort(port_socket sock)
{
	struct linger linger = { .l_onoff = 1, .l_linger = 0 };

	setsockopt((int)sock, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	close((int)sock);
}

int port_socket_local(port_socket sock, struct address *local)
{
	struct sys_address sys = { .bytes = sizeof(sys.six) };

	if (getsockname((int)sock, &sys.any, &sys.bytes))
		return -errno;
	*local = from_sys(&sys);
	return 0;
}

int port_socket_set_nodelay(port_socket sock)
{
	return set_option(sock, IPPROTO_TCP, TCP_NODELAY, 1);
}

int port_socket_set_nagle(port_socket sock)
{
	return set_option(sock, IPPROTO_TCP, TCP_NODELAY, 0);
}

int port_socket_set_dscp(port_socket sock, unsigned int dscp)
{
	struct address local;
	int err = port_socket_local(sock, &local);

	if (err)
		return err;
	return local.is_ipv6 ? set_option(sock, IPPROTO_IPV6, IPV6_TCLASS, (int)(dscp << 2)) : set_option(sock, IPPROTO_IP, IP_TOS, (int)(dscp << 2));
}

int port_socket_set_receive_buffer(port_socket sock, int size_bytes)
{
	if (set_option(sock, SOL_SOCKET, SO_RCVBUFFORCE, size_bytes) == 0) /* privileged: past the system's limit */
		return 0;
	return set_option(sock, SOL_SOCKET, SO_RCVBUF, size_bytes);
}

int port_socket_set_busy_poll(port_socket sock, int busy_poll_us)
{
	if (set_option(sock, SOL_SOCKET, SO_BUSY_POLL, busy_poll_us) || set_option(sock, SOL_SOCKET, SO_PREFER_BUSY_POLL, 1))
		return -ENOTSUP;
	return 0;
}

int port_socket_stamp_receive(port_socket sock)
{
	int flags = SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE;

	return set_option(sock, SOL_SOCKET, SO_TIMESTAMPING, flags) ? -ENOTSUP : 0;
}

int port_socket_stamp_transmit(port_socket sock)
{
	int flags = SOF_TIMESTAMPING_SOFTWARE | SOF_TIMESTAMPING_OPT_ID | SOF_TIMESTAMPING_OPT_TSONLY;

	return set_option(sock, SOL_SOCKET, SO_TIMESTAMPING, flags) ? -ENOTSUP : 0;
}

int port_socket_stamp_both(port_socket sock)
{
	int flags = SOF_TIMESTAMPING_SOFTWARE | SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_OPT_ID |
		    SOF_TIMESTAMPING_OPT_TSONLY;

	return set_option(sock, SOL_SOCKET, SO_TIMESTAMPING, flags) ? -ENOTSUP : 0;
}

enum port_clock port_stamp_clock(int64_t *step_ns)
{
	*step_ns = 1;
	return PORT_CLOCK_REALTIME;
}

/* Ask for a transmit stamp of this write alone. */
static void add_transmit_request(struct msghdr *message, union control *control)
{
	uint32_t flags = SOF_TIMESTAMPING_TX_SOFTWARE;
	struct cmsghdr *header;

	message->msg_control = control->bytes;
	message->msg_controllen = CMSG_SPACE(sizeof(flags));
	header = CMSG_FIRSTHDR(message);
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SO_TIMESTAMPING;
	header->cmsg_len = CMSG_LEN(sizeof(flags));
	memcpy(CMSG_DATA(header), &flags, sizeof(flags));
}

static int64_t send_message(port_socket sock, const struct msghdr *message)
{
	ssize_t written;

	do
		written = sendmsg((int)sock, message, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (written < 0 && errno == EINTR);
	return written < 0 ? -errno : written;
}

/* What is sent is only read: sendmsg shares its type with recvmsg. */
static struct iovec to_iovec(const void *data, size_t size_bytes)
{
	return (struct iovec){ .iov_base = (void *)(uintptr_t)data, .iov_len = size_bytes };
}

/* Join slices; 0: more than the room. */
static size_t join(uint8_t *joined, size_t room_bytes, const struct port_slice *slices, int count)
{
	size_t size_bytes = 0;

	for (int i = 0; i < count; i++) {
		if (slices[i].size_bytes > room_bytes - size_bytes)
			return 0;
		memcpy(joined + size_bytes, slices[i].data, slices[i].size_bytes);
		size_bytes += slices[i].size_bytes;
	}
	return size_bytes;
}

int64_t port_send(port_socket sock, const struct port_slice *slices, int count, bool want_transmit)
{
	struct iovec vector[PORT_SLICES_MAX];
	struct msghdr message = { .msg_iov = vector, .msg_iovlen = (size_t)count };
	union control control;
	uint8_t joined[JOINED_MAX_BYTES];
	size_t joined_bytes = want_transmit ? 0 : join(joined, sizeof(joined), slices, count);
	ssize_t written;

	if (joined_bytes) { /* send spares the kernel the reading of a message's header and vector: about 0.1 us */
		do
			written = send((int)sock, joined, joined_bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
		while (written < 0 && errno == EINTR);
		return written < 0 ? -errno : written;
	}
	for (int i = 0; i < count; i++)
		vector[i] = to_iovec(slices[i].data, slices[i].size_bytes);
	if (want_transmit)
		add_transmit_request(&message, &control);
	return send_message(sock, &message);
}

int64_t port_send_to(port_socket sock, const void *data, size_t size_bytes, const struct address *peer, bool want_transmit)
{
	struct sys_address sys = to_sys(peer);
	struct iovec vector = to_iovec(data, size_bytes);
	struct msghdr message = { .msg_iov = &vector, .msg_iovlen = 1, .msg_name = &sys.any, .msg_namelen = sys.bytes };
	union control control;

	if (want_transmit)
		add_transmit_request(&message, &control);
	return send_message(sock, &message);
}

/* Software stamp among the control messages, CLOCK_REALTIME; 0: none. */
static int64_t find_stamp_realtime_ns(struct msghdr *message)
{
	for (struct cmsghdr *h = CMSG_FIRSTHDR(message); h; h = CMSG_NXTHDR(message, h)) {
		struct scm_timestamping stamps;

		if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SO_TIMESTAMPING)
			continue;
		memcpy(&stamps, CMSG_DATA(h), sizeof(stamps));
		return stamps.ts[0].tv_sec * NS_PER_S + stamps.ts[0].tv_nsec;
	}
	return 0;
}

/* Read a datagram and its source: recvfrom spares the kernel the reading of a message's header and vector. */
static int64_t receive_unstamped(port_socket sock, void *data, size_t size_bytes, struct port_received *received)
{
	struct sys_address source = { .bytes = sizeof(source.six) };
	ssize_t length;

	do
		length = recvfrom((int)sock, data, size_bytes, MSG_DONTWAIT | MSG_TRUNC, &source.any, &source.bytes);
	while (length < 0 && errno == EINTR);
	if (length < 0)
		return -errno;
	received->source = from_sys(&source);
	received->truncated = (size_t)length > size_bytes;
	received->stamp_realtime_ns = received->stamp_monotonic_ns = 0;
	return received->truncated ? (int64_t)size_bytes : length;
}

static int64_t receive_stamped(port_socket sock, void *data, size_t size_bytes, struct port_received *received)
{
	struct iovec vector = { .iov_base = data, .iov_len = size_bytes };
	struct sys_address source = { 0 };
	union control control;
	struct msghdr message = {
		.msg_iov = &vector, .msg_iovlen = 1, .msg_name = &source.any, .msg_namelen = sizeof(source.six),
		.msg_control = control.bytes, .msg_controllen = sizeof(control.bytes),
	};
	ssize_t length;

	do
		length = recvmsg((int)sock, &message, MSG_DONTWAIT);
	while (length < 0 && errno == EINTR);
	if (length < 0)
		return -errno;
	received->source = from_sys(&source);
	received->truncated = (message.msg_flags & MSG_TRUNC) != 0;
	received->stamp_realtime_ns = find_stamp_realtime_ns(&message);
	received->stamp_monotonic_ns = 0;
	return length;
}

int64_t port_recv(port_socket sock, void *data, size_t size_bytes, struct port_received *received)
{
	ssize_t length;

	if (received)
		return received->unstamped ? receive_unstamped(sock, data, size_bytes, received) :
					     receive_stamped(sock, data, size_bytes, received);
	do
		length = recv((int)sock, data, size_bytes, MSG_DONTWAIT);
	while (length < 0 && errno == EINTR);
	return length < 0 ? -errno : length;
}

int port_socket_wait_readable(port_socket sock, int64_t timeout_ns)
{
	struct timespec timeout = { .tv_sec = timeout_ns / NS_PER_S, .tv_nsec = timeout_ns % NS_PER_S };
	struct pollfd poll_fd = { .fd = (int)sock, .events = POLLIN };
	int count = ppoll(&poll_fd, 1, &timeout, NULL);

	if (count < 0)
		return -errno;
	return count ? 0 : -ETIMEDOUT;
}

int port_recv_transmitted(port_socket sock, struct port_transmitted *transmitted)
{
	union control control;
	struct msghdr message = { .msg_control = control.bytes, .msg_controllen = sizeof(control.bytes) };
	bool has_key = false;

	if (recvmsg((int)sock, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
		return -errno;
	transmitted->stamp_realtime_ns = find_stamp_realtime_ns(&message);
	transmitted->stamp_monotonic_ns = 0;
	for (struct cmsghdr *h = CMSG_FIRSTHDR(&message); h; h = CMSG_NXTHDR(&message, h)) {
		struct sock_extended_err extended;

		if (!(h->cmsg_level == SOL_IP && h->cmsg_type == IP_RECVERR) && !(h->cmsg_level == SOL_IPV6 && h->cmsg_type == IPV6_RECVERR))
			continue;
		memcpy(&extended, CMSG_DATA(h), sizeof(extended));
		if (extended.ee_origin == SO_EE_ORIGIN_TIMESTAMPING && extended.ee_info == SCM_TSTAMP_SND) {
			transmitted->key = extended.ee_data;
			has_key = true;
		}
	}
	return has_key && transmitted->stamp_realtime_ns ? 0 : -EBADMSG;
}
