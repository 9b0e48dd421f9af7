/* SPDX-License-Identifier: Apache-2.0 */
/* Port layer for Windows: sockets, and their stamps. */
#include "port/port.h"

#include <winsock2.h>
#include <mswsock.h>
#include <ws2tcpip.h>
#include <windows.h>

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/time_units.h"
#include "port/windows/port_win32_control.h"
#include "port/windows/port_win32_socket_errno.h"

#ifndef SIO_UDP_CONNRESET
#define SIO_UDP_CONNRESET _WSAIOW(IOC_VENDOR, 12)
#endif
/* "Winsock timestamping"; headers have it from Windows 10 build 20348 on. */
#ifndef SIO_TIMESTAMPING
#define SIO_TIMESTAMPING _WSAIOW(IOC_VENDOR, 235)
#define SIO_GET_TX_TIMESTAMP _WSAIOW(IOC_VENDOR, 234)
#endif

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
	return setsockopt((SOCKET)sock, level, name, (const char *)&value, sizeof(value)) ? winsock_last_errno() : 0;
}

static int set_non_blocking(SOCKET sock)
{
	u_long on = 1;

	return ioctlsocket(sock, FIONBIO, &on) ? winsock_last_errno() : 0;
}

static int open_bound(int type, const struct address *local, SOCKET *sock_out)
{
	struct sys_address sys = to_sys(local);
	SOCKET sock = socket(sys.any.sa_family, type, 0);
	int err;

	if (sock == INVALID_SOCKET)
		return winsock_last_errno();
	err = set_non_blocking(sock);
	if (!err && bind(sock, &sys.any, sys.bytes))
		err = winsock_last_errno();
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

	return connect((SOCKET)sock, &sys.any, sys.bytes) ? winsock_last_errno() : 0;
}

int port_tcp_listen(const struct address *local, int backlog, port_socket *socket_out)
{
	SOCKET sock;
	int err = open_bound(SOCK_STREAM, local, &sock);

	if (err)
		return err;
	if (listen(sock, backlog)) {
		err = winsock_last_errno();
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
		return winsock_last_errno();
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
		err = winsock_last_errno();
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
		return winsock_last_errno();
	return code ? winsock_errno_of(code) : 0;
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
		return winsock_last_errno();
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
		return winsock_last_errno();
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
		return winsock_last_errno();
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

	return written == SOCKET_ERROR ? winsock_last_errno() : written;
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
		return winsock_last_errno();
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
		return winsock_last_errno();
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
		return winsock_last_errno();
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
		return winsock_last_errno();
	found->asked = false;
	*transmitted = (struct port_transmitted){ .key = id, .stamp_monotonic_ns = control_monotonic_ns(ticks, stamp_ticks_per_s()) };
	return bytes == sizeof(ticks) && transmitted->stamp_monotonic_ns ? 0 : -EBADMSG;
}
