/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stamps of Windows, by a stand-in of what Wine does not have: SIO_TIMESTAMPING, SO_TIMESTAMP in WSARecvMsg, SO_TIMESTAMP_ID in
 * WSASendMsg and SIO_GET_TX_TIMESTAMP, as Microsoft documents them. Sockets, and all the rest, are Wine's. Whether the document is
 * right only Windows can tell.
 */
#include <winsock2.h>
#include <mswsock.h>
#include <ws2tcpip.h>
#include <windows.h>

#include "check.h"

static int stand_in_ioctl(SOCKET sock, DWORD code, void *in, DWORD in_bytes, void *out, DWORD out_bytes, DWORD *bytes,
			  WSAOVERLAPPED *overlapped, LPWSAOVERLAPPED_COMPLETION_ROUTINE routine);
static int stand_in_send(SOCKET sock, WSAMSG *message, DWORD flags, DWORD *bytes, WSAOVERLAPPED *overlapped,
			 LPWSAOVERLAPPED_COMPLETION_ROUTINE routine);

#define WSAIoctl stand_in_ioctl
#define WSASendMsg stand_in_send
#include "../../traffic-gen/port/windows/port_win32_net.c"
#undef WSAIoctl
#undef WSASendMsg

enum { MUTE, HARDWARE, WHOLE }; /* stamps: none, of a card's own clock, of the performance counter */

static struct {
	bool offered, takes_ids; /* by the system */
	int stamps;
	ULONG flags;
	USHORT kept;
	bool has[8]; /* stamps to be asked for, by number */
	uint64_t sent_ticks[8];
	int looks_until_there; /* before a stamp is there */
} windows;

static uint64_t counter(void)
{
	LARGE_INTEGER ticks;

	QueryPerformanceCounter(&ticks);
	return (uint64_t)ticks.QuadPart;
}

static int fail(int code)
{
	WSASetLastError(code);
	return SOCKET_ERROR;
}

static INT WINAPI stand_in_receive(SOCKET sock, LPWSAMSG message, LPDWORD bytes, LPWSAOVERLAPPED overlapped,
				   LPWSAOVERLAPPED_COMPLETION_ROUTINE routine)
{
	uint64_t ticks = windows.stamps == HARDWARE ? counter() + (UINT64_C(1) << 62) : counter();
	WSACMSGHDR *header = (WSACMSGHDR *)message->Control.buf;
	int read = recvfrom(sock, message->lpBuffers->buf, (int)message->lpBuffers->len, 0, message->name, &message->namelen);

	(void)overlapped;
	(void)routine;
	if (read == SOCKET_ERROR)
		return read;
	*bytes = (DWORD)read;
	if (windows.stamps == MUTE) {
		message->Control.len = 0;
		return 0;
	}
	header->cmsg_len = WSA_CMSG_LEN(sizeof(ticks));
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = 0x300a;
	memcpy(WSA_CMSG_DATA(header), &ticks, sizeof(ticks));
	message->Control.len = WSA_CMSG_SPACE(sizeof(ticks));
	return 0;
}

static int stand_in_ioctl(SOCKET sock, DWORD code, void *in, DWORD in_bytes, void *out, DWORD out_bytes, DWORD *bytes,
			  WSAOVERLAPPED *overlapped, LPWSAOVERLAPPED_COMPLETION_ROUTINE routine)
{
	static const GUID of_receive = WSAID_WSARECVMSG;
	LPFN_WSARECVMSG receive = stand_in_receive;
	uint32_t id;

	switch (code) {
	case 0x980000ebu: /* SIO_TIMESTAMPING */
		if (!windows.offered)
			return fail(WSAEOPNOTSUPP);
		CHECK_INT(in_bytes, 8);
		memcpy(&windows.flags, in, 4);
		memcpy(&windows.kept, (char *)in + 4, 2);
		return 0;
	case 0x980000eau: /* SIO_GET_TX_TIMESTAMP */
		CHECK_INT(in_bytes, 4);
		CHECK_INT(out_bytes, 8);
		memcpy(&id, in, sizeof(id));
		if (windows.looks_until_there-- > 0 || windows.stamps == MUTE || id >= 8 || !windows.has[id])
			return fail(WSAEWOULDBLOCK);
		windows.has[id] = false;
		memcpy(out, &windows.sent_ticks[id], 8);
		*bytes = 8;
		return 0;
	case SIO_GET_EXTENSION_FUNCTION_POINTER:
		CHECK(in_bytes == sizeof(of_receive) && memcmp(in, &of_receive, sizeof(of_receive)) == 0);
		memcpy(out, &receive, sizeof(receive));
		return 0;
	default:
		return WSAIoctl(sock, code, in, in_bytes, out, out_bytes, bytes, overlapped, routine);
	}
}

static int stand_in_send(SOCKET sock, WSAMSG *message, DWORD flags, DWORD *bytes, WSAOVERLAPPED *overlapped,
			 LPWSAOVERLAPPED_COMPLETION_ROUTINE routine)
{
	const WSACMSGHDR *header = WSA_CMSG_FIRSTHDR(message);
	uint32_t id;

	(void)flags;
	if (!windows.takes_ids)
		return fail(WSAEINVAL);
	CHECK(message->name == NULL);
	CHECK_INT(header->cmsg_level, SOL_SOCKET);
	CHECK_INT(header->cmsg_type, 0x300b);
	CHECK_INT(header->cmsg_len, WSA_CMSG_LEN(sizeof(id)));
	memcpy(&id, WSA_CMSG_DATA(header), sizeof(id));
	if (id < 8) {
		windows.has[id] = true;
		windows.sent_ticks[id] = windows.stamps == HARDWARE ? UINT64_MAX : counter();
	}
	return WSASend(sock, message->lpBuffers, message->dwBufferCount, bytes, 0, overlapped, routine);
}

/* Two sockets of the loopback, connected. The first one is to be stamped. */
struct pair {
	port_socket stamped, peer;
};

static struct pair pair_open(void)
{
	struct address own = { .ipv4 = 0x7f000001 }, other = own;
	struct pair pair;

	CHECK_INT(port_udp_open(&own, &pair.stamped), 0);
	CHECK_INT(port_udp_open(&other, &pair.peer), 0);
	port_socket_local(pair.stamped, &own);
	port_socket_local(pair.peer, &other);
	CHECK_INT(port_udp_connect(pair.stamped, &other), 0);
	CHECK_INT(port_udp_connect(pair.peer, &own), 0);
	return pair;
}

static void pair_close(const struct pair *pair)
{
	port_socket_close(pair->stamped);
	port_socket_close(pair->peer);
}

static void ask(const struct pair *pair)
{
	struct port_slice slice = { "ask", 3 };

	CHECK_INT(port_send(pair->stamped, &slice, 1, true), 3);
}

static int64_t answer(const struct pair *pair, struct port_received *received, size_t room_bytes)
{
	char bytes[16];

	CHECK_INT(port_socket_wait_readable(pair->peer, INT64_C(5000000000)), 0);
	CHECK_INT(port_recv(pair->peer, bytes, sizeof(bytes), NULL), 3);
	CHECK_INT(port_send(pair->peer, &(struct port_slice){ "answer", 6 }, 1, false), 6);
	CHECK_INT(port_socket_wait_readable(pair->stamped, INT64_C(5000000000)), 0);
	return port_recv(pair->stamped, bytes, room_bytes, received);
}

static void test_both_ways(void)
{
	struct pair pair = pair_open();
	struct port_received received;
	struct port_transmitted transmitted;
	int64_t step_ns, begin_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC), sent_ns = 0;

	CHECK_INT(port_stamp_clock(&step_ns), PORT_CLOCK_MONOTONIC);
	CHECK(step_ns >= 1 && step_ns <= 1001);
	CHECK_INT(port_socket_stamp_both(pair.stamped), 0);
	CHECK_INT(windows.flags, 3);
	CHECK(windows.kept > 16);
	CHECK_INT(port_recv_transmitted(pair.stamped, &transmitted), -EAGAIN);
	for (uint32_t number = 0; number < 3; number++) {
		ask(&pair);
		if (number == 1)
			continue; /* its stamp is never asked for: the next request makes room */
		windows.looks_until_there = 1;
		CHECK_INT(port_recv_transmitted(pair.stamped, &transmitted), -EAGAIN);
		CHECK_INT(port_recv_transmitted(pair.stamped, &transmitted), 0);
		CHECK_INT(transmitted.key, number);
		CHECK_INT(transmitted.stamp_realtime_ns, 0);
		CHECK(transmitted.stamp_monotonic_ns >= begin_monotonic_ns);
		sent_ns = transmitted.stamp_monotonic_ns;
		CHECK_INT(port_recv_transmitted(pair.stamped, &transmitted), -EAGAIN);
	}
	CHECK(!windows.has[1]);
	CHECK_INT(answer(&pair, &received, 16), 6);
	CHECK(received.stamp_monotonic_ns >= sent_ns && received.stamp_monotonic_ns <= port_clock_now_ns(PORT_CLOCK_MONOTONIC));
	CHECK(received.stamp_realtime_ns == 0 && !received.truncated && received.source.ipv4 == 0x7f000001);
	CHECK_INT(answer(&pair, &received, 2), 2);
	CHECK(received.truncated);
	CHECK_INT(port_recv(pair.stamped, &step_ns, sizeof(step_ns), &received), -EAGAIN);
	pair_close(&pair);
}

/* What is not stamped, or by another clock, has no stamp; the datagrams are there all the same. */
static void test_without(int stamps, bool takes_ids)
{
	struct pair pair = pair_open();
	struct port_received received;
	struct port_transmitted transmitted;

	windows.stamps = stamps;
	windows.takes_ids = takes_ids;
	CHECK_INT(port_socket_stamp_both(pair.stamped), 0);
	ask(&pair);
	CHECK(port_recv_transmitted(pair.stamped, &transmitted) < 0);
	CHECK_INT(answer(&pair, &received, 16), 6);
	CHECK_INT(received.stamp_monotonic_ns, 0);
	pair_close(&pair);
}

static void test_not_offered(void)
{
	struct pair pair = pair_open();
	struct port_received received;

	windows.offered = false;
	CHECK_INT(port_socket_stamp_both(pair.stamped), -ENOTSUP);
	ask(&pair);
	CHECK_INT(answer(&pair, &received, 16), 6);
	CHECK(received.stamp_monotonic_ns == 0 && received.stamp_realtime_ns == 0);
	pair_close(&pair);
}

/* Places of sockets that were closed are given to others; when all are taken there are no stamps. */
static void test_places(void)
{
	static struct pair pairs[STAMPED_MAX + 1];

	for (int i = 0; i < 3 * STAMPED_MAX; i++) {
		pairs[0] = pair_open();
		CHECK_INT(port_socket_stamp_both(pairs[0].stamped), 0);
		pair_close(&pairs[0]);
	}
	for (int i = 0; i <= STAMPED_MAX; i++) {
		pairs[i] = pair_open();
		CHECK_INT(port_socket_stamp_both(pairs[i].stamped), i < STAMPED_MAX ? 0 : -ENOTSUP);
	}
	for (int i = 0; i <= STAMPED_MAX; i++)
		pair_close(&pairs[i]);
}

int main(void)
{
	CHECK_INT(port_init(), 0);
	windows.offered = windows.takes_ids = true;
	windows.stamps = WHOLE;
	test_both_ways();
	test_places();
	test_without(MUTE, true);
	test_without(HARDWARE, true);
	test_without(MUTE, false);
	test_not_offered();
	return check_result();
}
