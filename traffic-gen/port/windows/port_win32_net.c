/* SPDX-License-Identifier: Apache-2.0 */
/* Port layer for Windows: sockets and WSAPoll. */
#include "port/port.h"

#include <winsock2.h>
#include <mswsock.h>
#include <ws2tcpip.h>
#include <windows.h>

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/time_units.h"
#include "port/windows/port_win32_control.h"

#ifndef SIO_UDP_CONNRESET
#define SIO_UDP_CONNRESET _WSAIOW(IOC_VENDOR, 12)
#endif
/* "Winsock timestamping"; headers have it from Windows 10 build 20348 on. */
#ifndef SIO_TIMESTAMPING
#define SIO_TIMESTAMPING _WSAIOW(IOC_VENDOR, 235)
#define SIO_GET_TX_TIMESTAMP _WSAIOW(IOC_VENDOR, 234)
#endif

#define WAIT_SLICE_MS INT64_C(10)      /* how soon a socket that another thread adds is looked at */
#define SHORT_WAIT_NS INT64_C(200000)  /* one look and one short sleep, where less than 1 ms is left */

enum {
	STAMPED_MAX = 32,     /* sockets that are stamped at a time */
	STAMP_RECEIVED = 0x1, /* TIMESTAMPING_FLAG_RX */
	STAMP_SENT = 0x2,     /* TIMESTAMPING_FLAG_TX */
	STAMPS_KEPT = 256,    /* by the system, until they are asked for; more are thrown away */
	CONTROL_ROOM_BYTES = 256,
};

/* TIMESTAMPING_CONFIG */
struct stamping_config {
	ULONG flags;
	USHORT transmitted_kept;
};

/* A socket that the system stamps. */
struct stamped {
	SOCKET sock;
	LPFN_WSARECVMSG receive; /* NULL: a free place */
	uint32_t sends;          /* with a stamp; the number of the last one is one less */
	bool asked;              /* there is a stamp of the last one to ask for */
};

/* Winsock keeps nothing for the caller beside a socket. Of the one thread that stamps: port_socket_stamp_both. */
static struct stamped stamped[STAMPED_MAX];

static_assert(sizeof(WSACMSGHDR) == CONTROL_HEADER_BYTES, "port_win32_control.h is of 64 bit programs");
static_assert(WSA_CMSG_LEN(0) == CONTROL_HEADER_BYTES && WSA_CMSG_SPACE(sizeof(uint32_t)) == CONTROL_ID_BYTES, "padding");

static struct stamped *find_stamped(SOCKET sock)
{
	for (int i = 0; i < STAMPED_MAX; i++) {
		if (stamped[i].receive && stamped[i].sock == sock)
			return &stamped[i];
	}
	return NULL;
}

static void forget_stamped(SOCKET sock)
{
	struct stamped *found = find_stamped(sock);

	if (found)
		memset(found, 0, sizeof(*found));
}

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

/* An address as system calls have it. */
struct sys_address {
	union {
		struct sockaddr any;
		struct sockaddr_in four;
		struct sockaddr_in6 six;
	};
	int bytes;
};

static struct sys_address to_sys(const struct address *address)
{
	struct sys_address sys = { .bytes = sizeof(sys.six) };

	if (address->is_ipv6) {
		sys.six.sin6_family = AF_INET6;
		sys.six.sin6_port = htons(address->port);
		memcpy(&sys.six.sin6_addr, address->ipv6, sizeof(address->ipv6));
		return sys;
	}
	sys.four.sin_family = AF_INET;
	sys.four.sin_port = htons(address->port);
	sys.four.sin_addr.s_addr = htonl(address->ipv4);
	sys.bytes = sizeof(sys.four);
	return sys;
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
	return setsockopt((SOCKET)sock, level, name, (const char *)&value, sizeof(value)) ? last_error() : 0;
}

static int set_non_blocking(SOCKET sock)
{
	u_long on = 1;

	return ioctlsocket(sock, FIONBIO, &on) ? last_error() : 0;
}

static int open_bound(int type, const struct address *local, SOCKET *sock_out)
{
	struct sys_address sys = to_sys(local);
	SOCKET sock = socket(sys.any.sa_family, type, 0);
	int err;

	if (sock == INVALID_SOCKET)
		return last_error();
	err = set_non_blocking(sock);
	if (!err && bind(sock, &sys.any, sys.bytes))
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
	struct sys_address sys = to_sys(peer);

	return connect((SOCKET)sock, &sys.any, sys.bytes) ? last_error() : 0;
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
	struct sys_address sys = { .bytes = sizeof(sys.six) };
	SOCKET sock = accept((SOCKET)listener, &sys.any, &sys.bytes);
	int err;

	if (sock == INVALID_SOCKET)
		return last_error();
	err = set_non_blocking(sock);
	if (err) {
		closesocket(sock);
		return err;
	}
	*source = from_sys(&sys);
	*socket_out = (port_socket)sock;
	return 0;
}

int port_tcp_connect(const struct address *local, const struct address *peer, port_socket *socket_out)
{
	struct sys_address sys = to_sys(peer);
	SOCKET sock;
	int err = open_bound(SOCK_STREAM, local, &sock);

	if (err)
		return err;
	if (connect(sock, &sys.any, sys.bytes)) {
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
	forget_stamped((SOCKET)sock);
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
	struct sys_address sys = { .bytes = sizeof(sys.six) };

	if (getsockname((SOCKET)sock, &sys.any, &sys.bytes))
		return last_error();
	*local = from_sys(&sys);
	return 0;
}

int port_socket_set_nodelay(port_socket sock)
{
	return set_option(sock, IPPROTO_TCP, TCP_NODELAY, 1);
}

int port_socket_set_dscp(port_socket sock, unsigned int dscp)
{
	struct address local;
	int err = port_socket_local(sock, &local);

	if (err)
		return err;
	/* Effective where policy allows it. */
	return local.is_ipv6 ? set_option(sock, IPPROTO_IPV6, IPV6_TCLASS, (int)(dscp << 2)) : set_option(sock, IPPROTO_IP, IP_TOS, (int)(dscp << 2));
}

int port_socket_set_receive_buffer(port_socket sock, int size_bytes)
{
	return set_option(sock, SOL_SOCKET, SO_RCVBUF, size_bytes);
}

int port_socket_set_busy_poll(port_socket sock, int busy_poll_us)
{
	(void)sock;
	(void)busy_poll_us;
	return -ENOTSUP;
}

int port_poller_set_busy_poll(struct port_poller *poller, int busy_poll_us)
{
	(void)poller;
	(void)busy_poll_us;
	return -ENOTSUP;
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

int port_socket_stamp_both(port_socket sock)
{
	struct stamping_config config = { STAMP_RECEIVED | STAMP_SENT, STAMPS_KEPT };
	GUID of_receive = WSAID_WSARECVMSG;
	LPFN_WSARECVMSG receive = NULL;
	DWORD bytes;

	if (WSAIoctl((SOCKET)sock, SIO_TIMESTAMPING, &config, sizeof(config), NULL, 0, &bytes, NULL, NULL) ||
	    WSAIoctl((SOCKET)sock, SIO_GET_EXTENSION_FUNCTION_POINTER, &of_receive, sizeof(of_receive), &receive, sizeof(receive), &bytes,
		     NULL, NULL) ||
	    !receive)
		return -ENOTSUP;
	forget_stamped((SOCKET)sock);
	for (int i = 0; i < STAMPED_MAX; i++) {
		if (stamped[i].receive)
			continue;
		stamped[i] = (struct stamped){ .sock = (SOCKET)sock, .receive = receive };
		return 0;
	}
	return -ENOTSUP;
}

static uint64_t stamp_ticks_per_s(void)
{
	LARGE_INTEGER ticks_per_s;

	QueryPerformanceFrequency(&ticks_per_s); /* cannot fail since Windows XP */
	return (uint64_t)ticks_per_s.QuadPart;
}

enum port_clock port_stamp_clock(int64_t *step_ns)
{
	uint64_t ticks_per_s = stamp_ticks_per_s();

	*step_ns = (int64_t)((UINT64_C(1000000000) + ticks_per_s - 1) / ticks_per_s) + 1;
	return PORT_CLOCK_MONOTONIC;
}

/* Send a datagram whose stamp is asked for later, to an address or, NULL, the peer. Returns its bytes or -errno. */
static int64_t send_stamped(struct stamped *found, WSABUF *buffers, int count, struct sys_address *peer)
{
	uint8_t control[CONTROL_ID_BYTES];
	WSAMSG message = {
		.name = peer ? &peer->any : NULL,
		.namelen = peer ? peer->bytes : 0,
		.lpBuffers = buffers,
		.dwBufferCount = (DWORD)count,
		.Control = { .len = sizeof(control), .buf = (char *)control },
	};
	struct port_transmitted late;
	DWORD written;

	port_recv_transmitted((port_socket)found->sock, &late); /* of a request without an answer: it takes no place any more */
	control_put_id(control, found->sends);
	if (WSASendMsg(found->sock, &message, 0, &written, NULL, NULL))
		return last_error();
	found->sends++;
	found->asked = true;
	return written;
}

int64_t port_send(port_socket sock, const struct port_slice *slices, int count, bool want_transmit)
{
	struct stamped *found = want_transmit ? find_stamped((SOCKET)sock) : NULL;
	WSABUF buffers[PORT_SLICES_MAX];
	int64_t sent;
	DWORD written;

	for (int i = 0; i < count; i++) {
		buffers[i].buf = (char *)(uintptr_t)slices[i].data; /* only read: WSASend shares its type with WSARecv */
		buffers[i].len = (ULONG)slices[i].size_bytes;
	}
	if (found) {
		sent = send_stamped(found, buffers, count, NULL);
		if (sent != -EIO) /* -EIO: it takes no such message; it is sent without */
			return sent;
		forget_stamped((SOCKET)sock);
	}
	if (WSASend((SOCKET)sock, buffers, (DWORD)count, &written, 0, NULL, NULL))
		return last_error();
	return written;
}

int64_t port_send_to(port_socket sock, const void *data, size_t size_bytes, const struct address *peer, bool want_transmit)
{
	struct stamped *found = want_transmit ? find_stamped((SOCKET)sock) : NULL;
	struct sys_address sys = to_sys(peer);
	WSABUF buffer = { .len = (ULONG)size_bytes, .buf = (char *)(uintptr_t)data };
	int64_t sent;
	int written;

	if (found) {
		sent = send_stamped(found, &buffer, 1, &sys);
		if (sent != -EIO) /* as in port_send */
			return sent;
		forget_stamped((SOCKET)sock);
	}
	written = sendto((SOCKET)sock, data, (int)size_bytes, 0, &sys.any, sys.bytes);

	return written == SOCKET_ERROR ? last_error() : written;
}

/* As port_recv, of a socket that is stamped. */
static int64_t receive_stamped(const struct stamped *found, void *data, size_t size_bytes, struct port_received *received)
{
	uint8_t control[CONTROL_ROOM_BYTES];
	struct sys_address source = { 0 };
	WSABUF buffer = { .len = (ULONG)size_bytes, .buf = data };
	WSAMSG message = {
		.name = &source.any,
		.namelen = sizeof(source.six),
		.lpBuffers = &buffer,
		.dwBufferCount = 1,
		.Control = { .len = sizeof(control), .buf = (char *)control },
	};
	uint64_t ticks;
	DWORD read = 0;
	bool failed = found->receive(found->sock, &message, &read, NULL, NULL) != 0;
	bool truncated = failed && WSAGetLastError() == WSAEMSGSIZE;

	if (failed && !truncated)
		return last_error();
	*received = (struct port_received){
		.source = from_sys(&source),
		.truncated = truncated || (message.dwFlags & MSG_TRUNC),
	};
	if (!truncated && message.Control.len <= sizeof(control) && control_find_stamp(control, message.Control.len, &ticks))
		received->stamp_monotonic_ns = control_monotonic_ns(ticks, stamp_ticks_per_s());
	return truncated ? (int64_t)size_bytes : (int64_t)read;
}

int64_t port_recv(port_socket sock, void *data, size_t size_bytes, struct port_received *received)
{
	const struct stamped *found = received ? find_stamped((SOCKET)sock) : NULL;
	struct sys_address source = { .bytes = sizeof(source.six) };
	int read;
	bool truncated;

	if (found)
		return receive_stamped(found, data, size_bytes, received);
	read = recvfrom((SOCKET)sock, data, (int)size_bytes, 0, &source.any, &source.bytes);
	truncated = read == SOCKET_ERROR && WSAGetLastError() == WSAEMSGSIZE;
	if (read == SOCKET_ERROR && !truncated)
		return last_error();
	if (received) {
		received->source = from_sys(&source);
		received->truncated = truncated;
		received->stamp_realtime_ns = received->stamp_monotonic_ns = 0;
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
	struct stamped *found = find_stamped((SOCKET)sock);
	uint64_t ticks = 0;
	UINT32 id;
	DWORD bytes = 0;

	if (!found || !found->asked)
		return -EAGAIN;
	id = found->sends - 1;
	/* Never waits; WSAEWOULDBLOCK: it is not there yet. */
	if (WSAIoctl((SOCKET)sock, SIO_GET_TX_TIMESTAMP, &id, sizeof(id), &ticks, sizeof(ticks), &bytes, NULL, NULL))
		return last_error();
	found->asked = false;
	*transmitted = (struct port_transmitted){ .key = id, .stamp_monotonic_ns = control_monotonic_ns(ticks, stamp_ticks_per_s()) };
	return bytes == sizeof(ticks) && transmitted->stamp_monotonic_ns ? 0 : -EBADMSG;
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
