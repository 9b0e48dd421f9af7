/* SPDX-License-Identifier: Apache-2.0 */
/* Port layer for Windows: sockets and WSAPoll. */
#include "port/port.h"

#include <winsock2.h>
#include <ws2tcpip.h>
#include <windows.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#ifndef SIO_UDP_CONNRESET
#define SIO_UDP_CONNRESET _WSAIOW(IOC_VENDOR, 12)
#endif

#define NS_PER_MS INT64_C(1000000)
#define WAIT_SLICE_MS INT64_C(10)      /* how soon a socket that another thread adds is looked at */
#define SHORT_WAIT_NS INT64_C(200000)  /* one look and one short sleep, where less than 1 ms is left */

static int error_of(int code)
{
	switch (code) {
	case WSAEWOULDBLOCK:
		return -EAGAIN;
	case WSAEINPROGRESS:
		return -EINPROGRESS;
	case WSAECONNREFUSED:
		return -ECONNREFUSED;
	case WSAECONNRESET:
		return -ECONNRESET;
	case WSAECONNABORTED:
		return -ECONNABORTED;
	case WSAENOTCONN:
		return -ENOTCONN;
	case WSAESHUTDOWN:
		return -EPIPE;
	case WSAETIMEDOUT:
		return -ETIMEDOUT;
	case WSAEADDRINUSE:
		return -EADDRINUSE;
	case WSAEADDRNOTAVAIL:
		return -EADDRNOTAVAIL;
	case WSAEHOSTUNREACH:
		return -EHOSTUNREACH;
	case WSAENETUNREACH:
		return -ENETUNREACH;
	case WSAEACCES:
		return -EACCES;
	case WSAEMSGSIZE:
		return -EMSGSIZE;
	case WSAENOBUFS:
		return -ENOBUFS;
	case WSAEINTR:
		return -EINTR;
	default:
		return -EIO;
	}
}

static int last_error(void)
{
	return error_of(WSAGetLastError());
}

static struct sockaddr_in to_sockaddr(const struct address *address)
{
	struct sockaddr_in sockaddr = { .sin_family = AF_INET, .sin_port = htons(address->port) };

	sockaddr.sin_addr.s_addr = htonl(address->ipv4);
	return sockaddr;
}

static struct address from_sockaddr(const struct sockaddr_in *sockaddr)
{
	return (struct address){ .ipv4 = ntohl(sockaddr->sin_addr.s_addr), .port = ntohs(sockaddr->sin_port) };
}

static int set_option(port_socket sock, int level, int name, int value)
{
	return setsockopt((SOCKET)sock, level, name, (const char *)&value, sizeof(value)) ? last_error() : 0;
}

static int set_non_blocking(SOCKET sock)
{
	u_long on = 1;

	return ioctlsocket(sock, FIONBIO, &on) ? last_error() : 0;
}

static int open_bound(int type, const struct address *local, SOCKET *sock_out)
{
	struct sockaddr_in sockaddr = to_sockaddr(local);
	SOCKET sock = socket(AF_INET, type, 0);
	int err;

	if (sock == INVALID_SOCKET)
		return last_error();
	err = set_non_blocking(sock);
	if (!err && bind(sock, (const struct sockaddr *)&sockaddr, sizeof(sockaddr)))
		err = last_error();
	if (err) {
		closesocket(sock);
		return err;
	}
	*sock_out = sock;
	return 0;
}

int port_udp_open(const struct address *local, port_socket *socket_out)
{
	BOOL off = FALSE;
	DWORD bytes;
	SOCKET sock;
	int err = open_bound(SOCK_DGRAM, local, &sock);

	if (err)
		return err;
	/* a refused datagram must not fail the next read */
	WSAIoctl(sock, SIO_UDP_CONNRESET, &off, sizeof(off), NULL, 0, &bytes, NULL, NULL);
	*socket_out = (port_socket)sock;
	return 0;
}

int port_udp_connect(port_socket sock, const struct address *peer)
{
	struct sockaddr_in sockaddr = to_sockaddr(peer);

	return connect((SOCKET)sock, (const struct sockaddr *)&sockaddr, sizeof(sockaddr)) ? last_error() : 0;
}

int port_tcp_listen(const struct address *local, int backlog, port_socket *socket_out)
{
	SOCKET sock;
	int err = open_bound(SOCK_STREAM, local, &sock);

	if (err)
		return err;
	if (listen(sock, backlog)) {
		err = last_error();
		closesocket(sock);
		return err;
	}
	*socket_out = (port_socket)sock;
	return 0;
}

int port_tcp_accept(port_socket listener, port_socket *socket_out, struct address *source)
{
	struct sockaddr_in sockaddr = { 0 };
	int length = sizeof(sockaddr);
	SOCKET sock = accept((SOCKET)listener, (struct sockaddr *)&sockaddr, &length);
	int err;

	if (sock == INVALID_SOCKET)
		return last_error();
	err = set_non_blocking(sock);
	if (err) {
		closesocket(sock);
		return err;
	}
	*source = from_sockaddr(&sockaddr);
	*socket_out = (port_socket)sock;
	return 0;
}

int port_tcp_connect(const struct address *local, const struct address *peer, port_socket *socket_out)
{
	struct sockaddr_in sockaddr = to_sockaddr(peer);
	SOCKET sock;
	int err = open_bound(SOCK_STREAM, local, &sock);

	if (err)
		return err;
	if (connect(sock, (const struct sockaddr *)&sockaddr, sizeof(sockaddr))) {
		err = last_error();
		if (err == -EAGAIN) /* Windows says so of a connection that is under way */
			err = -EINPROGRESS;
		if (err != -EINPROGRESS) {
			closesocket(sock);
			return err;
		}
	}
	*socket_out = (port_socket)sock;
	return err;
}

int port_tcp_connect_result(port_socket sock)
{
	int code = 0, length = sizeof(code);

	if (getsockopt((SOCKET)sock, SOL_SOCKET, SO_ERROR, (char *)&code, &length))
		return last_error();
	return code ? error_of(code) : 0;
}

void port_tcp_shutdown_input(port_socket sock)
{
	shutdown((SOCKET)sock, SD_RECEIVE);
}

void port_socket_close(port_socket sock)
{
	closesocket((SOCKET)sock);
}

void port_socket_abort(port_socket sock)
{
	struct linger linger = { .l_onoff = 1, .l_linger = 0 };

	setsockopt((SOCKET)sock, SOL_SOCKET, SO_LINGER, (const char *)&linger, sizeof(linger));
	closesocket((SOCKET)sock);
}

int port_socket_local(port_socket sock, struct address *local)
{
	struct sockaddr_in sockaddr = { 0 };
	int length = sizeof(sockaddr);

	if (getsockname((SOCKET)sock, (struct sockaddr *)&sockaddr, &length))
		return last_error();
	*local = from_sockaddr(&sockaddr);
	return 0;
}

int port_socket_set_nodelay(port_socket sock)
{
	return set_option(sock, IPPROTO_TCP, TCP_NODELAY, 1);
}

int port_socket_set_dscp(port_socket sock, unsigned int dscp)
{
	return set_option(sock, IPPROTO_IP, IP_TOS, (int)(dscp << 2)); /* effective where policy allows it */
}

int port_socket_set_receive_buffer(port_socket sock, int size_bytes)
{
	return set_option(sock, SOL_SOCKET, SO_RCVBUF, size_bytes);
}

int port_socket_stamp_receive(port_socket sock)
{
	(void)sock;
	return -ENOTSUP;
}

int port_socket_stamp_transmit(port_socket sock)
{
	(void)sock;
	return -ENOTSUP;
}

int64_t port_send(port_socket sock, const struct port_slice *slices, int count, bool want_transmit)
{
	WSABUF buffers[PORT_SLICES_MAX];
	DWORD written;

	(void)want_transmit;
	for (int i = 0; i < count; i++) {
		buffers[i].buf = (char *)(uintptr_t)slices[i].data; /* only read: WSASend shares its type with WSARecv */
		buffers[i].len = (ULONG)slices[i].size_bytes;
	}
	if (WSASend((SOCKET)sock, buffers, (DWORD)count, &written, 0, NULL, NULL))
		return last_error();
	return written;
}

int64_t port_send_to(port_socket sock, const void *data, size_t size_bytes, const struct address *peer)
{
	struct sockaddr_in sockaddr = to_sockaddr(peer);
	int written = sendto((SOCKET)sock, data, (int)size_bytes, 0, (const struct sockaddr *)&sockaddr, sizeof(sockaddr));

	return written == SOCKET_ERROR ? last_error() : written;
}

int64_t port_recv(port_socket sock, void *data, size_t size_bytes, struct port_received *received)
{
	struct sockaddr_in source = { 0 };
	int length = sizeof(source);
	int read = recvfrom((SOCKET)sock, data, (int)size_bytes, 0, (struct sockaddr *)&source, &length);
	bool truncated = read == SOCKET_ERROR && WSAGetLastError() == WSAEMSGSIZE;

	if (read == SOCKET_ERROR && !truncated)
		return last_error();
	if (received) {
		received->source = from_sockaddr(&source);
		received->truncated = truncated;
		received->stamp_realtime_ns = 0;
	}
	return truncated ? (int64_t)size_bytes : read;
}

int port_socket_wait_readable(port_socket sock, int64_t timeout_ns)
{
	WSAPOLLFD poll_fd = { .fd = (SOCKET)sock, .events = POLLRDNORM };
	int count = WSAPoll(&poll_fd, 1, (INT)((timeout_ns + NS_PER_MS - 1) / NS_PER_MS));

	if (count == SOCKET_ERROR)
		return last_error();
	return count ? 0 : -ETIMEDOUT;
}

int port_recv_transmitted(port_socket sock, struct port_transmitted *transmitted)
{
	(void)sock;
	(void)transmitted;
	return -EAGAIN;
}

struct port_poller {
	CRITICAL_SECTION lock; /* of entries, users and count */
	int capacity;
	int count;
	WSAPOLLFD *entries;
	void **users;
	WSAPOLLFD *polled; /* copies that the waiting thread uses */
	void **polled_users;
};

int port_poller_create(int capacity, struct port_poller **poller_out)
{
	struct port_poller *poller = calloc(1, sizeof(*poller));

	if (!poller)
		return -ENOMEM;
	InitializeCriticalSection(&poller->lock);
	poller->capacity = capacity;
	poller->entries = calloc((size_t)capacity, sizeof(*poller->entries));
	poller->users = calloc((size_t)capacity, sizeof(*poller->users));
	poller->polled = calloc((size_t)capacity, sizeof(*poller->polled));
	poller->polled_users = calloc((size_t)capacity, sizeof(*poller->polled_users));
	if (!poller->entries || !poller->users || !poller->polled || !poller->polled_users) {
		port_poller_destroy(poller);
		return -ENOMEM;
	}
	*poller_out = poller;
	return 0;
}

void port_poller_destroy(struct port_poller *poller)
{
	if (!poller)
		return;
	DeleteCriticalSection(&poller->lock);
	free(poller->entries);
	free(poller->users);
	free(poller->polled);
	free(poller->polled_users);
	free(poller);
}

static SHORT to_poll_events(unsigned int events)
{
	return (SHORT)((events & PORT_POLL_IN ? POLLRDNORM : 0) | (events & PORT_POLL_OUT ? POLLWRNORM : 0));
}

/* Index of a socket, or -1. The lock is held. */
static int find(const struct port_poller *poller, port_socket sock)
{
	for (int i = 0; i < poller->count; i++) {
		if (poller->entries[i].fd == (SOCKET)sock)
			return i;
	}
	return -1;
}

int port_poller_add(struct port_poller *poller, port_socket sock, unsigned int events, void *user)
{
	int err = 0;

	EnterCriticalSection(&poller->lock);
	if (poller->count == poller->capacity) {
		err = -ENOSPC;
	} else {
		poller->entries[poller->count] = (WSAPOLLFD){ .fd = (SOCKET)sock, .events = to_poll_events(events) };
		poller->users[poller->count++] = user;
	}
	LeaveCriticalSection(&poller->lock);
	return err;
}

int port_poller_remove(struct port_poller *poller, port_socket sock)
{
	int index;

	EnterCriticalSection(&poller->lock);
	index = find(poller, sock);
	if (index >= 0) {
		poller->count--;
		poller->entries[index] = poller->entries[poller->count];
		poller->users[index] = poller->users[poller->count];
	}
	LeaveCriticalSection(&poller->lock);
	return index >= 0 ? 0 : -ENOENT;
}

static int copy_entries(struct port_poller *poller)
{
	int count;

	EnterCriticalSection(&poller->lock);
	count = poller->count;
	memcpy(poller->polled, poller->entries, (size_t)count * sizeof(*poller->polled));
	memcpy(poller->polled_users, poller->users, (size_t)count * sizeof(*poller->polled_users));
	LeaveCriticalSection(&poller->lock);
	return count;
}

/* Look once, for at most a slice. @return sockets with events, or -errno */
static int poll_slice(struct port_poller *poller, int count, int64_t left_ns)
{
	int64_t left_ms = left_ns / NS_PER_MS;
	int ready = 0;

	if (count > 0)
		ready = WSAPoll(poller->polled, (ULONG)count, (INT)(left_ms < WAIT_SLICE_MS ? left_ms : WAIT_SLICE_MS));
	else
		port_sleep_ns(left_ms < WAIT_SLICE_MS ? left_ns : WAIT_SLICE_MS * NS_PER_MS);
	if (ready == SOCKET_ERROR)
		return last_error();
	if (ready == 0 && left_ms == 0 && left_ns > 0)
		port_sleep_ns(left_ns < SHORT_WAIT_NS ? left_ns : SHORT_WAIT_NS);
	return ready;
}

static int collect(const struct port_poller *poller, int count, struct port_event *events, int capacity)
{
	int found = 0;

	for (int i = 0; i < count && found < capacity; i++) {
		SHORT bits = poller->polled[i].revents;

		if (bits == 0)
			continue;
		events[found].user = poller->polled_users[i];
		events[found++].events = (bits & POLLRDNORM ? PORT_POLL_IN : 0u) | (bits & POLLWRNORM ? PORT_POLL_OUT : 0u) |
					 (bits & (POLLERR | POLLHUP | POLLNVAL) ? PORT_POLL_ERROR : 0u);
	}
	return found;
}

int port_poller_wait(struct port_poller *poller, struct port_event *events, int capacity, int64_t timeout_ns)
{
	int64_t deadline_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC) + timeout_ns;

	for (;;) {
		int64_t left_ns = timeout_ns < 0 ? WAIT_SLICE_MS * NS_PER_MS
						 : deadline_monotonic_ns - port_clock_now_ns(PORT_CLOCK_MONOTONIC);
		int count = copy_entries(poller);
		int ready = poll_slice(poller, count, left_ns > 0 ? left_ns : 0);

		if (ready < 0)
			return ready;
		if (ready > 0)
			return collect(poller, count, events, capacity);
		if (left_ns <= 0 || port_stop_requested())
			return 0;
	}
}
