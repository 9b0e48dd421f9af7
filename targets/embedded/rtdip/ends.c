/* SPDX-License-Identifier: Apache-2.0 */
#include "ends.h"

#include <errno.h>
#include <stddef.h>

#include "base/time_units.h"
#include "config/options.h"
#include "numbers.h"

int end_open(struct end *end, const char *local, const char *socket_path, unsigned int flags, bool fragments)
{
	struct address address;
	int64_t port;
	int err;

	*end = (struct end){ .sock = PORT_SOCKET_NONE, .fragments = fragments };
	if (option_parse_int(local, 0, UINT16_MAX, &port) == 0) {
		err = rtdip_open(socket_path, flags, &end->handle);
		end->no_service = err != 0;
		if (err)
			return err;
		err = rtdip_bind(end->handle, (uint16_t)port, fragments ? END_BUFFER_BYTES : 0);
		if (err < 0) {
			end_close(end);
			return err;
		}
		end->port = (uint16_t)err;
		return 0;
	}
	if (address_parse(local, &address))
		return -EINVAL;
	err = port_udp_open(&address, &end->sock);
	if (err)
		end->sock = PORT_SOCKET_NONE;
	else if (fragments)
		port_socket_set_receive_buffer(end->sock, END_BUFFER_BYTES);
	return err;
}

void end_close(struct end *end)
{
	if (end->handle)
		rtdip_close(end->handle);
	if (end->sock != PORT_SOCKET_NONE)
		port_socket_close(end->sock);
	*end = (struct end){ .sock = PORT_SOCKET_NONE };
}

void end_stamp_received(struct end *end)
{
	if (!end->handle)
		port_socket_stamp_receive(end->sock);
}

int end_set_busy_poll(struct end *end, int busy_poll_us)
{
	int err = end->handle ? -ENOTSUP : port_socket_set_busy_poll(end->sock, busy_poll_us);

	if (!err)
		end->busy_poll_ns = busy_poll_us * NS_PER_US;
	return err;
}

bool end_is_same_peer(const struct end *end, const struct peer *one, const struct peer *other)
{
	if (end->handle)
		return rtdip_same_address(&one->rtdip, &other->rtdip);
	return one->udp.port == other->udp.port && address_same_ip(&one->udp, &other->udp);
}

int end_parse_peer(const struct end *end, const char *text, struct peer *peer)
{
	int64_t port;
	int used;

	if (!end->handle)
		return address_parse(text, &peer->udp);
	used = rtdip_parse_mac(text, peer->rtdip.mac);
	if (used < 0 || text[used] != '/' || option_parse_int(text + used + 1, 1, UINT16_MAX, &port))
		return -EINVAL;
	peer->rtdip.port = (uint16_t)port;
	return 0;
}

/* Send a message in fragments. What stopped it within is waited for, else all that went would be in vain. */
static int64_t send_fragments(struct end *end, const struct rtdip_address *to, enum rtdip_priority priority, const void *data,
			      size_t size_bytes)
{
	uint8_t frame[RTDIP_DATA_MAX_BYTES];
	uint32_t number = end->next.message;
	size_t frame_max_bytes = rtdip_data_max_bytes(end->handle);

	while (end->next.message == number) {
		bool is_first = end->next.offset == 0;
		size_t frame_bytes = fragments_cut(&end->next, data, size_bytes, frame, frame_max_bytes);
		int64_t sent;

		while ((sent = rtdip_send(end->handle, to, end->port, priority, frame, frame_bytes)) == -EAGAIN && !is_first &&
		       !port_stop_requested())
			port_thread_yield();
		if (sent < 0) {
			end->next = (struct rtdip_fragment){ number + 1, 0 };
			return sent;
		}
	}
	return (int64_t)size_bytes;
}

int64_t end_send(struct end *end, const struct peer *to, enum rtdip_priority priority, const void *data, size_t size_bytes)
{
	if (end->handle && end->fragments)
		return send_fragments(end, &to->rtdip, priority, data, size_bytes);
	if (end->handle)
		return rtdip_send(end->handle, &to->rtdip, end->port, priority, data, size_bytes);
	return port_send_to(end->sock, data, size_bytes, &to->udp, false);
}

static int64_t take_rtdip(struct end *end, struct peer *from, enum rtdip_priority *priority, void *data, size_t room_bytes,
			  int64_t timeout_ns)
{
	static _Thread_local uint8_t frame[RTDIP_DATA_MAX_BYTES];
	int64_t begin_monotonic_ns = end->fragments ? port_clock_now_ns(PORT_CLOCK_MONOTONIC) : 0, left_ns = timeout_ns;
	struct rtdip_message message;
	int64_t length;
	int err;

	for (;;) {
		err = end->fragments ? rtdip_receive(end->handle, &message, frame, sizeof(frame), left_ns) :
				       rtdip_receive(end->handle, &message, data, room_bytes, left_ns);
		if (err)
			return err;
		length = end->fragments ? fragments_take(&end->assembly, &message.from, frame, message.size_bytes, data, room_bytes) :
					  (int64_t)message.size_bytes;
		if (length >= 0)
			break;
		left_ns = begin_monotonic_ns + timeout_ns - port_clock_now_ns(PORT_CLOCK_MONOTONIC);
		if (left_ns <= 0)
			return -ETIMEDOUT;
	}
	from->rtdip = message.from;
	*priority = message.priority;
	end->heard_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);
	end->receiving_ns = end->heard_monotonic_ns - message.received_monotonic_ns;
	return length;
}

static int64_t take_udp(struct end *end, struct peer *from, void *data, size_t room_bytes, int64_t timeout_ns)
{
	int64_t polled_until_monotonic_ns, length;
	struct port_received received = { 0 };

	length = port_recv(end->sock, data, room_bytes, &received);
	if (length == -EAGAIN && end->busy_poll_ns && timeout_ns > 0) {
		polled_until_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC) + end->busy_poll_ns;
		do /* each reading polls the card once */
			length = port_recv(end->sock, data, room_bytes, &received);
		while (length == -EAGAIN && port_clock_now_ns(PORT_CLOCK_MONOTONIC) < polled_until_monotonic_ns);
	}
	if (length == -EAGAIN && timeout_ns > 0) {
		int err = port_socket_wait_readable(end->sock, timeout_ns);

		length = err ? err : port_recv(end->sock, data, room_bytes, &received);
	}
	from->udp = received.source;
	end->heard_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);
	end->receiving_ns = received.stamp_realtime_ns ? port_clock_now_ns(PORT_CLOCK_REALTIME) - received.stamp_realtime_ns : -1;
	return length == -EAGAIN ? -ETIMEDOUT : length;
}

static int64_t take(struct end *end, struct peer *from, enum rtdip_priority *priority, void *data, size_t room_bytes,
		    int64_t timeout_ns)
{
	*priority = RTDIP_HIGH;
	return end->handle ? take_rtdip(end, from, priority, data, room_bytes, timeout_ns)
			   : take_udp(end, from, data, room_bytes, timeout_ns);
}

int64_t end_receive(struct end *end, struct peer *from, enum rtdip_priority *priority, void *data, size_t room_bytes,
		    int64_t timeout_ns)
{
	int64_t deadline_monotonic_ns, length;

	if (!end->busy)
		return take(end, from, priority, data, room_bytes, timeout_ns);
	deadline_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC) + timeout_ns;
	do
		length = take(end, from, priority, data, room_bytes, 0);
	while (length == -ETIMEDOUT && port_clock_now_ns(PORT_CLOCK_MONOTONIC) < deadline_monotonic_ns);
	return length;
}
