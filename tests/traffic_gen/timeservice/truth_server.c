/* SPDX-License-Identifier: Apache-2.0 */
/**
 * An NTP server whose time is a known function of this machine's counter (truth.h).
 *
 *   timeservice-truth-server begin SEED WALK_PPB              print a truth that starts now
 *   timeservice-truth-server serve TRUTH ADDRESS[:PORT] [AHEAD_NS [SLEW_PPB]]
 *
 * Serving, it prints `ready ADDRESS:PORT` first (without one: any) and goes on until it is ended. AHEAD_NS: it lies by that. With
 * SLEW_PPB it is honest: from the first request on it slews that away, states what is left as its root distance, and is silent once
 * nothing is. It knows the interleaved mode (RFC 9769). Stamps are the kernel's where they can be had, turned into the counter; else
 * its own readings, the first as early and the second as late as they can be.
 */
#include <math.h>
#include <string.h>

#include "base/address.h"
#include "base/big_endian.h"
#include "base/time_units.h"
#include "ntp/ntp_packet.h"
#include "timeservice/bracket.h"
#include "truth.h"

#define LOOK_NS INT64_C(50000000)
#define BRACKET_ERROR_LARGEST_NS 55 /* kernel stamps that cannot be turned into the counter so well are not used */

enum {
	PRECISION_LOG2_S = -24, /* 60 ns */
	CLIENT_MODE = 3, SERVER_MODE = 4, VERSION = 4,
	ROOT_DISPERSION_AT = 8, ROOT_DISPERSION_BYTES = 4, SHORT_PER_S = 65536,
	REFERENCE_AT = 16, ORIGIN_AT = 24, RECEIVE_AT = 32, TRANSMIT_AT = 40, STAMP_BYTES = 8,
	ANSWERS = 64, /* that are remembered for the interleaved mode */
};

/* An answer: the stamp of its request, by which the next request names it, and when it really left. */
struct answer {
	uint64_t receive, transmit;
};

struct server {
	struct truth truth;
	struct local_time local;
	port_socket sock;
	struct bracket before; /* of clocks and counter, a while ago */
	int64_t ahead_ns;
	double slew_ppb;      /* 0: it stays ahead */
	uint64_t asked_ticks; /* of the first request; 0: none yet */
	uint32_t sends;
	struct answer answers[ANSWERS]; /* the last ones: a ring */
};

/* What it is still ahead by, not before the first request. */
static int64_t left_ns(const struct server *server, uint64_t ticks)
{
	double asked_s = (double)(int64_t)(ticks - server->asked_ticks) / (double)server->truth.start.hz;

	return server->ahead_ns - llround(server->slew_ppb * asked_s);
}

static uint64_t stamp_at(struct server *server, uint64_t ticks)
{
	return ntp_from_realtime_ns(truth_at(&server->truth, ticks) + left_ns(server, ticks));
}

/* The counter at a kernel's stamp. Returns whether it can be told well enough. */
static bool ticks_of_kernel(const struct server *server, int64_t stamp_realtime_ns, uint64_t *ticks)
{
	struct bracket after;
	int64_t local_ns, error_ns;

	bracket_read(&server->local, &after);
	if (!stamp_realtime_ns || !bracket_map(&server->before, &after, stamp_realtime_ns, &local_ns, &error_ns) ||
	    error_ns > BRACKET_ERROR_LARGEST_NS)
		return false;
	*ticks = local_to_ticks(&server->local, local_ns);
	return true;
}

static const struct answer *answer_before(const struct server *server, uint64_t receive)
{
	for (int i = 0; i < ANSWERS; i++)
		if (server->answers[i].receive == receive && server->answers[i].transmit)
			return &server->answers[i];
	return NULL;
}

/* Read when the answer left, for the next one. */
static uint64_t transmit_stamp(struct server *server)
{
	struct port_transmitted transmitted;
	uint64_t ticks;

	while (port_recv_transmitted(server->sock, &transmitted) == 0)
		if (transmitted.key == server->sends - 1 && ticks_of_kernel(server, transmitted.stamp_realtime_ns, &ticks))
			return stamp_at(server, ticks);
	return 0;
}

static void answer(struct server *server, const uint8_t *request, const struct port_received *received, uint64_t received_ticks)
{
	uint64_t origin = big_endian_get(request + ORIGIN_AT, STAMP_BYTES);
	uint64_t receive = big_endian_get(request + RECEIVE_AT, STAMP_BYTES), transmit = big_endian_get(request + TRANSMIT_AT, STAMP_BYTES);
	const struct answer *before = receive && receive != transmit ? answer_before(server, origin) : NULL;
	struct answer *own = &server->answers[server->sends % ANSWERS];
	uint8_t packet[NTP_PACKET_BYTES] = { VERSION << 3 | SERVER_MODE, 1, 0, (uint8_t)PRECISION_LOG2_S, [12] = 'T', 'E', 'S', 'T' };
	uint64_t ticks = received_ticks, arrived, left;

	if (ticks_of_kernel(server, received->stamp_realtime_ns, &ticks) && ticks > received_ticks)
		ticks = received_ticks;
	if (!server->asked_ticks)
		server->asked_ticks = ticks;
	if (server->slew_ppb > 0) {
		if (left_ns(server, port_counter_read()) <= 0)
			return;
		big_endian_put(packet + ROOT_DISPERSION_AT, ROOT_DISPERSION_BYTES,
			       (uint64_t)(left_ns(server, ticks) * SHORT_PER_S / NS_PER_S + 1));
	}
	arrived = stamp_at(server, ticks);
	big_endian_put(packet + REFERENCE_AT, STAMP_BYTES, arrived);
	big_endian_put(packet + ORIGIN_AT, STAMP_BYTES, before ? receive : transmit);
	big_endian_put(packet + RECEIVE_AT, STAMP_BYTES, arrived);
	left = before ? before->transmit : stamp_at(server, port_counter_read());
	big_endian_put(packet + TRANSMIT_AT, STAMP_BYTES, left);
	if (port_send_to(server->sock, packet, sizeof(packet), &received->source, true) < 0)
		return;
	server->sends++;
	*own = (struct answer){ .receive = arrived };
	own->transmit = transmit_stamp(server);
}

static void serve(struct server *server)
{
	uint8_t request[NTP_PACKET_BYTES + 1];
	struct port_transmitted late;

	for (;;) {
		struct port_received received = { 0 };
		uint64_t ticks;

		bracket_read(&server->local, &server->before);
		truth_at(&server->truth, port_counter_read());
		while (port_recv_transmitted(server->sock, &late) == 0)
			; /* too late for its answer */
		port_socket_wait_readable(server->sock, LOOK_NS);
		while (port_recv(server->sock, request, sizeof(request), &received) == NTP_PACKET_BYTES) {
			ticks = port_counter_read();
			if ((request[0] & 7) == CLIENT_MODE && (request[0] >> 3 & 7) == VERSION)
				answer(server, request, &received, ticks);
			received = (struct port_received){ 0 };
		}
	}
}

static int begin_to_serve(struct server *server, const char *truth, const char *address_text)
{
	struct truth_start start;
	struct address address = { 0 };
	char text[ADDRESS_TEXT_BYTES];

	if (!truth_start_parse(truth, &start) || (address_parse(address_text, &address) && address_parse_ipv4(address_text, &address.ipv4))) {
		fputs("usage: timeservice-truth-server serve TRUTH ADDRESS[:PORT] [AHEAD_NS [SLEW_PPB]]\n", stderr);
		return 2;
	}
	truth_init(&server->truth, &start);
	server->local = (struct local_time){ start.ticks, 0, start.hz };
	if (port_udp_open(&address, &server->sock) || port_socket_local(server->sock, &address) ||
	    port_socket_stamp_both(server->sock)) {
		fprintf(stderr, "%s: cannot be served\n", address_text);
		return 3;
	}
	address_format(&address, text);
	printf("ready %s\n", text);
	fflush(stdout);
	serve(server); /* for ever */
	return 0;
}

int main(int argc, char **argv)
{
	static struct server server;

	if (port_init())
		return 3;
	if (argc == 4 && strcmp(argv[1], "begin") == 0) {
		struct truth_start start = truth_start_now(strtoull(argv[2], NULL, 10), strtod(argv[3], NULL));

		truth_start_print(&start);
		return 0;
	}
	if (argc >= 4 && argc <= 6 && strcmp(argv[1], "serve") == 0) {
		server.ahead_ns = argc > 4 ? strtoll(argv[4], NULL, 10) : 0;
		server.slew_ppb = argc > 5 ? strtod(argv[5], NULL) : 0;
		return begin_to_serve(&server, argv[2], argv[3]);
	}
	fputs("usage: timeservice-truth-server begin SEED WALK_PPB | serve TRUTH ADDRESS[:PORT] [AHEAD_NS [SLEW_PPB]]\n", stderr);
	return 2;
}
