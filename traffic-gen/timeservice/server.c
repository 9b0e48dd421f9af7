/* SPDX-License-Identifier: Apache-2.0 */
#include "timeservice/server.h"

#include <errno.h>
#include <string.h>

#include "port/port_clock.h"
#include "timeservice/bracket.h"

enum { STAMPS_MAX = 16, DATAGRAM_ROOM_BYTES = 192 };

#define AWAKE_NS INT64_C(500000) /* an answer from the same network comes within that */

/* A request under way. */
struct asking {
	struct bracket before;
	uint64_t sent_ticks, received_ticks;
	int64_t sent_kernel_ns, received_kernel_ns; /* stamps of the kernel's clock; 0: none */
	int64_t deadline_monotonic_ns;
	unsigned int of_key; /* what was wrong with the MAC of an answer; NTP_GOOD: nothing */
};

static int tag_of(void *context, const uint8_t *bytes, size_t size_bytes, uint8_t tag[EXCHANGE_TAG_BYTES])
{
	return port_cmac_tag(context, bytes, size_bytes, tag);
}

_Static_assert((int)EXCHANGE_TAG_BYTES == (int)PORT_CMAC_TAG_BYTES, "the whole tag");

int server_init(struct server *server, const struct server_settings *settings, const struct estimate_settings *estimate)
{
	struct estimate_settings own = *estimate;

	memset(server, 0, sizeof(*server));
	server->settings = *settings;
	server->sock = PORT_SOCKET_NONE;
	ntp_exchange_init(&server->exchange, settings->interleave);
	if (settings->key)
		ntp_exchange_use_key(&server->exchange, &(struct exchange_key){ settings->key, tag_of, settings->cmac });
	own.min_way_ns = settings->min_way_ns;
	errno = 0;
	server->estimate = estimate_create(&own);
	return server->estimate ? 0 : errno ? -errno : -ENOMEM;
}

static void close_socket(struct server *server)
{
	if (server->sock != PORT_SOCKET_NONE)
		port_socket_close(server->sock);
	server->sock = PORT_SOCKET_NONE;
}

void server_close(struct server *server)
{
	close_socket(server);
	estimate_destroy(server->estimate);
	server->estimate = NULL;
}

int server_open_socket(struct server *server)
{
	struct address any = { 0 };
	int err;

	close_socket(server);
	err = port_udp_open(&any, &server->sock);
	if (!err)
		err = port_udp_connect(server->sock, &server->settings.address);
	if (err) {
		close_socket(server);
		return err;
	}
	server->sends = 0;
	server->stamping = !server->settings.user_stamps && port_socket_stamp_both(server->sock) == 0;
	return 0;
}

int64_t server_root_distance_ns(const struct server *server)
{
	return server->settings.root_distance_ns == SERVER_ROOT_AS_SAID ? server->relied.root_distance_ns :
									  server->settings.root_distance_ns;
}

static int refused(struct server *server, const struct server_context *context, unsigned int reject)
{
	server->last_reject = reject;
	return context->refusal ? context->refusal(context->sink, server, reject) : 0;
}

/* A number for the wire that nobody can guess, and that is not in use. Returns 0 or -errno. */
static int draw_number(const struct server *server, uint64_t *number)
{
	int err;

	do
		err = port_random(number);
	while (!err && (*number == 0 || *number == server->exchange.transmit || *number == server->exchange.received));
	return err;
}

/* Send the request. Returns 0 or -errno of sending. */
static int send_request(struct server *server, const struct server_context *context, struct asking *asking)
{
	uint8_t packet[EXCHANGE_PACKET_BYTES];
	struct port_slice slice = { packet, 0 };
	uint64_t number;
	int64_t sent;
	int size;

	memset(asking, 0, sizeof(*asking));
	asking->deadline_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC) + context->timeout_ns;
	if (server->stamping)
		bracket_read(&context->local, &asking->before);
	size = draw_number(server, &number);
	if (size)
		return size;
	size = ntp_exchange_ask(&server->exchange, number, packet);
	if (size < 0)
		return size;
	slice.size_bytes = (size_t)size;
	asking->sent_ticks = port_counter_before();
	sent = port_send(server->sock, &slice, 1, server->stamping);
	if (sent < 0)
		return (int)sent;
	server->sent++;
	server->sends++;
	return 0;
}

/* Of what the kernel stamps by: the clock of the brackets. */
static int64_t stamp_of(int64_t realtime_ns, int64_t monotonic_ns)
{
	int64_t step_ns;

	return port_stamp_clock(&step_ns) == PORT_CLOCK_REALTIME ? realtime_ns : monotonic_ns;
}

static void take_transmit_stamps(struct server *server, struct asking *asking)
{
	struct port_transmitted transmitted;
	int err = 0;

	for (int i = 0; server->stamping && i < STAMPS_MAX && (!err || err == -EBADMSG); i++) {
		err = port_recv_transmitted(server->sock, &transmitted);
		if (!err && transmitted.key == server->sends - 1)
			asking->sent_kernel_ns = stamp_of(transmitted.stamp_realtime_ns, transmitted.stamp_monotonic_ns);
	}
}

/* The kernel's stamps where both can be believed; the program's own otherwise. */
static struct exchange_stamps stamps_of(const struct server *server, const struct server_context *context, const struct asking *asking)
{
	int64_t sent_local_ns = local_from_ticks(&context->local, asking->sent_ticks);
	int64_t received_local_ns = local_from_ticks(&context->local, asking->received_ticks);
	struct exchange_stamps stamps = {
		.t1_local_ns = sent_local_ns,
		.t4_local_ns = received_local_ns,
		.t1_ticks = asking->sent_ticks,
		.t4_ticks = asking->received_ticks,
		.error_ns = 1,
	};
	struct bracket after;
	int64_t t1_local_ns, t4_local_ns, t1_error_ns, t4_error_ns, error_ns;

	if (!server->stamping || !asking->sent_kernel_ns || !asking->received_kernel_ns)
		return stamps;
	bracket_read(&context->local, &after);
	if (!bracket_map(&asking->before, &after, asking->sent_kernel_ns, &t1_local_ns, &t1_error_ns) ||
	    !bracket_map(&asking->before, &after, asking->received_kernel_ns, &t4_local_ns, &t4_error_ns))
		return stamps;
	error_ns = t1_error_ns > t4_error_ns ? t1_error_ns : t4_error_ns;
	if (t1_local_ns < sent_local_ns - error_ns || t4_local_ns > received_local_ns + error_ns || t1_local_ns > t4_local_ns)
		return stamps;
	return (struct exchange_stamps){
		.t1_local_ns = t1_local_ns,
		.t4_local_ns = t4_local_ns,
		.error_ns = error_ns + 1,
		.kernel = true,
	};
}

/* A server that denies is not asked again (RFC 5905, section 7.4). */
static void obey_kiss(struct server *server)
{
	if (strcmp(server->said.kiss, "DENY") == 0 || strcmp(server->said.kiss, "RSTR") == 0)
		server->denied = true;
	else if (strcmp(server->said.kiss, "RATE") == 0)
		server->complained = true;
}

/* The answer is good: complete its exchange, or the one before it. Returns enum server_result or -errno. */
static int finish(struct server *server, const struct server_context *context, const struct asking *asking,
		  struct exchange_sample *sample)
{
	struct exchange_stamps stamps = stamps_of(server, context, asking);
	unsigned int reject;
	uint64_t number;
	bool told;
	int err = draw_number(server, &number);

	if (err)
		return err;
	told = ntp_exchange_finish(&server->exchange, &stamps, number, sample, &reject);
	if (reject != NTP_GOOD) {
		err = refused(server, context, reject);
		return err ? err : SERVER_NOTHING;
	}
	server->relied = server->said;
	server->received++;
	server->heard_ticks = asking->received_ticks;
	server->answered_ever = true;
	server->last_reject = NTP_GOOD;
	if (!told)
		return SERVER_NOTHING;
	if (server->settings.root_distance_ns != SERVER_ROOT_AS_SAID)
		sample->root_distance_ns = server->settings.root_distance_ns;
	server->kernel_stamps = sample->kernel_stamps;
	server->interleaved = sample->interleaved;
	return SERVER_SAMPLE;
}

/* Look at what is there. Returns enum server_result, -EAGAIN: the answer is still to come, or -errno. */
static int take(struct server *server, const struct server_context *context, struct asking *asking,
		struct exchange_sample *sample)
{
	uint8_t bytes[DATAGRAM_ROOM_BYTES];
	struct port_received received = { 0 };
	const struct address *own = &server->settings.address;
	int64_t size;
	unsigned int reject;
	bool ended;
	int err;

	take_transmit_stamps(server, asking);
	size = port_recv(server->sock, bytes, sizeof(bytes), &received);
	asking->received_ticks = port_counter_after();
	if (size == -EAGAIN || size == -EINTR)
		return -EAGAIN;
	if (size < 0) { /* nobody listens there, or the network is down: it may come back */
		ntp_exchange_count(&server->exchange, EXCHANGE_NOT_SENT);
		err = refused(server, context, EXCHANGE_NOT_SENT);
		return err ? err : SERVER_NOTHING;
	}
	asking->received_kernel_ns = stamp_of(received.stamp_realtime_ns, received.stamp_monotonic_ns);
	reject = ntp_exchange_take(&server->exchange, bytes, (size_t)size,
				   received.source.ipv4 == own->ipv4 && received.source.port == own->port, &ended, &server->said);
	if (reject == NTP_GOOD) {
		take_transmit_stamps(server, asking);
		return finish(server, context, asking, sample);
	}
	if (reject == NTP_KISS_OF_DEATH)
		obey_kiss(server);
	if (exchange_reject_is_of_key(reject))
		asking->of_key = reject;
	err = refused(server, context, reject);
	return err ? err : ended ? SERVER_NOTHING : -EAGAIN;
}

/* Look for an answer without sleeping. Returns as take(). */
static int look_awake(struct server *server, const struct server_context *context, struct asking *asking,
		      struct exchange_sample *sample)
{
	int64_t until_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC) + AWAKE_NS;
	int err;

	do
		err = take(server, context, asking, sample);
	while (err == -EAGAIN && port_clock_now_ns(PORT_CLOCK_MONOTONIC) < until_monotonic_ns);
	return err;
}

int server_ask(struct server *server, const struct server_context *context, struct exchange_sample *sample, int *event)
{
	struct asking asking;
	int err = server->sock == PORT_SOCKET_NONE ? -ENOTCONN : send_request(server, context, &asking);

	if (err) {
		ntp_exchange_count(&server->exchange, EXCHANGE_NOT_SENT);
		err = refused(server, context, EXCHANGE_NOT_SENT);
		return err ? err : SERVER_NOTHING;
	}
	/* Where the program stamps itself, how long it takes to wake up is part of the way back. */
	if (!server->stamping) {
		err = look_awake(server, context, &asking, sample);
		if (err != -EAGAIN)
			return err;
	}
	/* However many others send: none of them ends it but time. */
	do {
		*event = waiter_wait_socket(context->waiter, asking.deadline_monotonic_ns, server->sock);
		if (*event < 0)
			return *event;
		if (*event == WAIT_TIME)
			break;
		if (*event != WAIT_DATAGRAM)
			return SERVER_EVENT;
		err = take(server, context, &asking, sample);
		if (err != -EAGAIN)
			return err;
	} while (port_clock_now_ns(PORT_CLOCK_MONOTONIC) < asking.deadline_monotonic_ns);
	ntp_exchange_count(&server->exchange, EXCHANGE_NO_ANSWER);
	err = refused(server, context, EXCHANGE_NO_ANSWER);
	if (asking.of_key)
		server->last_reject = asking.of_key;
	return err ? err : SERVER_NOTHING;
}
