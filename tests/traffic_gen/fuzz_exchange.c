/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Fuzz target: the client of the two-way transfer (`offset --peer`, the clocks of `recv`), behind its socket. Whatever comes, a
 * reply is taken only for the last request and once; a burst ends in bounded time; the line is none, or one with a bound.
 */
#include <errno.h>
#include <string.h>

#include "fuzz_port.h"
#include "time/exchange.h"

#define START_TAI_NS INT64_C(1790000000000000000)
#define TIMEOUT_NS INT64_C(100000000)
#define COOKIE UINT64_C(0x0123456789abcdef)

enum { PORT = 19999, BURST = 8, BURSTS_MAX = 64, BETWEEN_LOOKS_MAX = 64, FLOOD = 100 };

static struct script script;
static struct exchange_peer peer;
static const struct address responder = { .ipv4 = 0x0a000001u, .port = PORT };
static uint8_t request[TWOWAY_PACKET_BYTES];
static bool asked;
static uint64_t requests, replies, reads_since_look;

static void on_sent(port_socket sock, const uint8_t *bytes, size_t size_bytes, const struct address *to)
{
	(void)sock;
	promise(size_bytes == sizeof(request) && to->ipv4 == responder.ipv4 && to->port == responder.port);
	memcpy(request, bytes, sizeof(request));
	asked = !fuzz_port.fail_send;
	requests++;
}

/* Written a second time from docs/native-tools.md: a reply repeats sequence, cookie and t1 of its request. */
static void on_received(port_socket sock, const uint8_t *bytes, int64_t length, bool truncated, const struct address *source)
{
	static const uint8_t head[8] = { 'B', 'W', 'O', '1', 0, 1, 0, 2 };

	(void)sock;
	(void)source;
	promise(++reads_since_look <= BETWEEN_LOOKS_MAX);
	if (length != TWOWAY_PACKET_BYTES || truncated || !asked)
		return;
	if (memcmp(bytes, head, sizeof(head)) || memcmp(bytes + 8, request + 8, 24))
		return;
	asked = false; /* a second answer to it is none */
	replies++;
}

static void put_reply(const struct address *source, int count)
{
	uint8_t place = (uint8_t)script_take(&script, 1), change = (uint8_t)script_take(&script, 1);
	struct twoway_packet packet;
	uint8_t wire[TWOWAY_PACKET_BYTES];

	if (twoway_parse(request, sizeof(request), &packet) != 0)
		return;
	packet.kind = TWOWAY_REPLY;
	packet.t2_peer_ns = packet.t1_local_ns + (int32_t)script_take(&script, 4);
	packet.t3_peer_ns = packet.t2_peer_ns + (int16_t)script_take(&script, 2);
	if (place & 128)
		packet.t3_peer_ns = (int64_t)script_take(&script, 8);
	twoway_pack(&packet, wire);
	wire[place % sizeof(wire)] ^= change;
	for (int i = 0; i < count; i++)
		fuzz_port_datagram(peer.sock, wire, sizeof(wire), source);
}

/* Something happens; false: the client is to look. */
static bool happen(void)
{
	uint8_t what = (uint8_t)script_take(&script, 1);
	struct address source = { .ipv4 = responder.ipv4 + (what >= 248), .port = PORT };
	const uint8_t *bytes;
	size_t length;

	switch (what & 7) {
	case 0: return false;
	case 1:
	case 2: put_reply(&source, what & 128 ? FLOOD : 1); break;
	case 3:
		length = script_take_bytes(&script, (size_t)script_take(&script, 1), &bytes);
		fuzz_port_datagram(peer.sock, bytes, length, &source);
		break;
	case 4: fuzz_port.monotonic_ns += (int64_t)script_take(&script, 3); break;
	case 5: fuzz_port.stamp_age_ns = (int32_t)script_take(&script, 4); break;
	case 6:
		if (what & 8)
			fuzz_port_fail_read(peer.sock, -ECONNREFUSED);
		else if (what & 16)
			fuzz_port.fail_send = -ENETUNREACH;
		else
			fuzz_port.fail_wait = what & 32 ? -EINTR : -ENOMEM;
		break;
	default: fuzz_port.tai_minus_monotonic_ns += (int32_t)script_take(&script, 4); break;
	}
	return true;
}

static void on_wait(const struct port_poller *poller)
{
	(void)poller;
	reads_since_look = 0;
	while (script.left && happen())
		;
}

static void check(struct twoway *twoway, enum twoway_outcome outcome, int64_t began_monotonic_ns)
{
	struct twoway_line line = twoway_current(twoway);
	struct twoway_summary summary;

	promise(peer.replies == replies && peer.replies <= peer.requests && peer.requests <= requests);
	promise(fuzz_port.monotonic_ns - began_monotonic_ns <= BURST * (TIMEOUT_NS + (INT64_C(1) << 24) * 1024));
	promise(outcome == TWOWAY_NOTHING || line.valid);
	promise(!line.valid || (line.bound_ns >= 0 && line.bound_growth_ppb >= 0));
	twoway_summarise(twoway, 0, INT64_C(1) << 62, &summary);
	promise(summary.exchanges + summary.invalid == replies && summary.kept <= summary.exchanges);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct twoway_config config;
	struct twoway *twoway;
	struct port_tai tai = { .tai_utc_s = TAI_UTC_DEFAULT_S };

	config = twoway_default_config();
	twoway = twoway_create(&config);
	if (!twoway)
		return 0;
	fuzz_port_reset(START_TAI_NS);
	fuzz_port.watch = (struct fuzz_watch){ .received = on_received, .sent = on_sent, .waits = on_wait };
	script = (struct script){ data, size };
	fuzz_port.stamps = script_take(&script, 1) & 1;
	memset(request, 0, sizeof(request));
	asked = false;
	requests = replies = reads_since_look = 0;
	promise(exchange_open(&peer, &responder, COOKIE) == 0);
	for (int i = 0; i < BURSTS_MAX && script.left; i++) {
		int64_t began_monotonic_ns = fuzz_port.monotonic_ns, step_ns;

		check(twoway, exchange_burst(&peer, &tai, twoway, BURST, TIMEOUT_NS, &step_ns), began_monotonic_ns);
		fuzz_port.monotonic_ns += INT64_C(1000000000);
	}
	exchange_close(&peer);
	fuzz_port_expect_all_closed();
	twoway_destroy(twoway);
	return 0;
}
