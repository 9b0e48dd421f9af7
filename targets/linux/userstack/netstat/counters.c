/* SPDX-License-Identifier: Apache-2.0 */
/* The counters of all programs, in the manner of netstat -s. */
#include <inttypes.h>
#include <stdio.h>

#include "netstat/json_text.h"
#include "netstat/netstat.h"

struct line {
	const char *key, *words; /* key NULL: a heading */
};

static const struct line ip_lines[] = {
	{ "ip_in", "packets received" },
	{ "ip_out", "packets sent" },
	{ "ip_malformed", "malformed packets dropped" },
	{ "ip_checksum", "packets with a wrong header checksum dropped" },
	{ NULL, NULL },
};

static const struct line tcp_lines[] = {
	{ "tcp_in", "segments received" },
	{ "tcp_out", "segments sent" },
	{ "tcp_retransmitted", "segments sent again:" },
	{ "tcp_retransmitted_by_rack", "    found lost by later ones that arrived (RACK)" },
	{ "tcp_retransmitted_by_probe", "    as a probe of the tail" },
	{ "tcp_retransmitted_by_timeout", "    by timeout" },
	{ "tcp_duplicates", "segments received twice" },
	{ "tcp_malformed", "malformed segments dropped" },
	{ "tcp_checksum", "segments with a wrong checksum dropped" },
	{ "tcp_no_memory", "segments dropped for want of memory" },
	{ NULL, NULL },
};

static const struct line udp_lines[] = {
	{ "udp_in", "datagrams received" },
	{ "udp_out", "datagrams sent" },
	{ "udp_no_port", "datagrams to a port without a socket" },
	{ "udp_full", "datagrams dropped: the socket's buffer was full" },
	{ "udp_malformed", "malformed datagrams dropped" },
	{ "udp_checksum", "datagrams with a wrong checksum dropped" },
	{ NULL, NULL },
};

static const struct line program_lines[] = {
	{ "frames_in", "frames taken by programs" },
	{ "frames_out", "frames handed over by programs" },
	{ "frames_no_room", "frames of programs dropped: the transmit ring was full" },
	{ "neighbour_dropped", "packets of programs dropped: their neighbour did not answer, or too many waited for it" },
	{ NULL, NULL },
};

static const struct line frame_lines[] = {
	{ "in", "frames from the interface" },
	{ "bytes_in", "bytes of IP from the interface" },
	{ "out", "frames to the interface" },
	{ "bytes_out", "bytes of IP to the interface" },
	{ NULL, NULL },
};

static const struct line drop_lines[] = {
	{ "ring_full", "frames from the interface dropped: the program's receive ring was full" },
	{ "fill_ring_empty", "frames from the interface dropped: the program had given no memory" },
	{ "bad_descriptor", "frames of programs dropped: they lay outside of its memory" },
	{ "malformed", "frames of programs dropped: malformed" },
	{ "foreign_protocol", "frames of programs dropped: neither TCP nor UDP" },
	{ "foreign_address", "frames of programs dropped: from an address that is not the interface's" },
	{ "foreign_port", "frames of programs dropped: from a port that was not the program's" },
	{ "foreign_fragment", "frames of programs dropped: a fragment whose first one was not the program's" },
	{ NULL, NULL },
};

static void print_lines(const char *counts, const struct line *line)
{
	for (; line->key; line++) {
		const char *words = line->words;

		for (; *words == ' '; words++)
			putchar(' ');
		printf("    %" PRIu64 " %s\n", json_text_number(json_text_member(counts, line->key)), words);
	}
}

/* Add up how many sockets of a kind programs have now. */
static uint64_t sockets_of(const char *text, const char *kind)
{
	const char *program = json_text_first(json_text_member(text, "programs"));
	uint64_t sum = 0;

	for (; program; program = json_text_next(program))
		sum += json_text_number(json_text_member(json_text_member(program, "sockets_by_kind"), kind));
	return sum;
}

static void print_tcp(const char *text, const char *counts)
{
	puts("Tcp:");
	print_lines(counts, tcp_lines);
	printf("    %" PRIu64 " listeners now\n", sockets_of(text, "tcp_listening"));
	printf("    %" PRIu64 " other sockets now\n", sockets_of(text, "tcp_open"));
	printf("    %" PRIu64 " connections without a socket now\n", sockets_of(text, "tcp_without_socket"));
}

static void print_udp(const char *text, const char *counts)
{
	puts("Udp:");
	print_lines(counts, udp_lines);
	printf("    %" PRIu64 " sockets now\n", sockets_of(text, "udp_open"));
}

void counters_print(const char *text, const struct choice *choice)
{
	const char *totals = json_text_member(text, "totals"), *counts = json_text_member(totals, "counts");
	const char *frames = json_text_member(totals, "frames");
	const bool all = choice->tcp == choice->udp;

	if (all) {
		puts("Ip:");
		print_lines(counts, ip_lines);
	}
	if (all || choice->tcp)
		print_tcp(text, counts);
	if (all || choice->udp)
		print_udp(text, counts);
	if (all) {
		puts("Packet path:");
		print_lines(frames, frame_lines);
		print_lines(counts, program_lines);
		print_lines(json_text_member(frames, "drops"), drop_lines);
	}
}
