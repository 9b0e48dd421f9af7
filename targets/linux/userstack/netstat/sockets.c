/* SPDX-License-Identifier: Apache-2.0 */
/* The table of sockets, in the manner of ss(8). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "netstat/json_text.h"
#include "netstat/netstat.h"

enum { CELL_BYTES = 80, COLUMNS = 7, RIGHT_FIRST = 2, US_PER_MS = 1000 };

/* The words of a row: netid, state, two queues, two ends, program. */
struct row {
	char cell[COLUMNS][CELL_BYTES];
};

struct table {
	const struct choice *choice;
	int width[COLUMNS];
	bool print; /* else the widths are found */
};

static const struct { const char *name, *shown; } states[] = {
	{ "ESTABLISHED", "ESTAB" }, { "SYN_SENT", "SYN-SENT" }, { "SYN_RECV", "SYN-RECV" }, { "FIN_WAIT1", "FIN-WAIT-1" },
	{ "FIN_WAIT2", "FIN-WAIT-2" }, { "TIME_WAIT", "TIME-WAIT" }, { "CLOSE", "UNCONN" }, { "CLOSE_WAIT", "CLOSE-WAIT" },
	{ "LAST_ACK", "LAST-ACK" }, { "LISTEN", "LISTEN" }, { "CLOSING", "CLOSING" },
};

static uint64_t number_of(const char *object, const char *key)
{
	return json_text_number(json_text_member(object, key));
}

static const char *shown_state(const char *sock, char *name, size_t bytes)
{
	json_text_string(json_text_member(sock, "state"), name, bytes);
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		if (strcmp(states[i].name, name) == 0)
			return states[i].shown;
	}
	return name;
}

static void write_end(char *to, const char *end, bool ipv6)
{
	char address[CELL_BYTES / 2];

	if (!end) {
		snprintf(to, CELL_BYTES, "%s:*", ipv6 ? "[::]" : "0.0.0.0");
		return;
	}
	json_text_string(json_text_member(end, "address"), address, sizeof(address));
	snprintf(to, CELL_BYTES, ipv6 ? "[%s]:%" PRIu64 : "%s:%" PRIu64, address, number_of(end, "port"));
}

static void write_program(char *to, const char *program, const char *sock, const struct choice *choice)
{
	const char *descriptor = json_text_member(sock, "descriptor");
	const uint64_t pid = number_of(program, "pid");
	char name[NETSTAT_NAME_BYTES], by[CELL_BYTES / 2] = "";

	json_text_string(json_text_member(program, "name"), name, sizeof(name));
	if (!choice->program) {
		snprintf(to, CELL_BYTES, "%s/%" PRIu64, name, pid);
		return;
	}
	if (descriptor)
		snprintf(by, sizeof(by), ",fd=%" PRIu64, json_text_number(descriptor));
	snprintf(to, CELL_BYTES, "users:((\"%s\",pid=%" PRIu64 "%s))", name, pid, by);
}

static void fill_in(struct row *row, const char *program, const char *sock, const struct choice *choice)
{
	const bool ipv6 = number_of(sock, "family") == 6;
	const char *listener = json_text_member(sock, "accept_most");
	char state[NETSTAT_NAME_BYTES];

	json_text_string(json_text_member(sock, "protocol"), row->cell[0], CELL_BYTES);
	snprintf(row->cell[1], CELL_BYTES, "%s", shown_state(sock, state, sizeof(state)));
	snprintf(row->cell[2], CELL_BYTES, "%" PRIu64, number_of(sock, listener ? "accept_waiting" : "waiting_bytes"));
	snprintf(row->cell[3], CELL_BYTES, "%" PRIu64,
		 listener ? json_text_number(listener) : number_of(sock, "unsent_bytes") + number_of(sock, "unacknowledged_bytes"));
	write_end(row->cell[4], json_text_member(sock, "local"), ipv6);
	write_end(row->cell[5], json_text_member(sock, "peer"), ipv6);
	write_program(row->cell[6], program, sock, choice);
}

static void show_row(struct table *table, const struct row *row)
{
	for (int i = 0; i < COLUMNS; i++) {
		const int bytes = (int)strlen(row->cell[i]);

		if (!table->print)
			table->width[i] = bytes > table->width[i] ? bytes : table->width[i];
		else if (i == COLUMNS - 1)
			printf("%s\n", row->cell[i]);
		else
			printf(i == RIGHT_FIRST || i == RIGHT_FIRST + 1 ? "%*s  " : "%-*s  ", table->width[i], row->cell[i]);
	}
}

static void show_more(const char *sock)
{
	static const struct { const char *shown, *key; } all[] = {
		{ "mss", "segment_bytes" }, { "cwnd", "congestion_window_bytes" }, { "snd_wnd", "send_window_bytes" },
		{ "rcv_wnd", "receive_window_bytes" }, { "unsent", "unsent_bytes" }, { "unacked", "unacknowledged_bytes" },
		{ "segs_out", "sent_segments" }, { "retrans", "retransmitted" }, { "by_rack", "retransmitted_by_rack" },
		{ "by_probe", "retransmitted_by_probe" }, { "by_timeout", "retransmitted_by_timeout" }, { "duplicates", "duplicates" },
	};
	const uint64_t rtt_us = number_of(sock, "smoothed_rtt_us"), rto_us = number_of(sock, "retransmission_timeout_us");

	if (!json_text_member(sock, "segment_bytes"))
		return;
	printf("\trtt:%" PRIu64 ".%03" PRIu64 "ms rto:%" PRIu64 ".%03" PRIu64 "ms", rtt_us / US_PER_MS, rtt_us % US_PER_MS,
	       rto_us / US_PER_MS, rto_us % US_PER_MS);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		printf(" %s:%" PRIu64, all[i].shown, number_of(sock, all[i].key));
	putchar('\n');
}

static bool is_wanted(const char *sock, const struct choice *choice)
{
	char word[NETSTAT_NAME_BYTES];
	bool tcp, listens;

	tcp = strcmp(json_text_string(json_text_member(sock, "protocol"), word, sizeof(word)), "tcp") == 0;
	if ((choice->tcp || choice->udp) && !(tcp ? choice->tcp : choice->udp))
		return false;
	json_text_string(json_text_member(sock, "state"), word, sizeof(word));
	/* Of UDP one that has no peer, as ss has it. */
	listens = strcmp(word, "LISTEN") == 0 || (!tcp && strcmp(word, "CLOSE") == 0);
	return choice->all || (choice->listening ? listens : !listens && strcmp(word, "CLOSE") != 0);
}

static void show_program(struct table *table, const char *program)
{
	const char *sock = json_text_first(json_text_member(program, "sockets"));

	for (; sock; sock = json_text_next(sock)) {
		struct row row;

		if (!is_wanted(sock, table->choice))
			continue;
		fill_in(&row, program, sock, table->choice);
		show_row(table, &row);
		if (table->print && table->choice->extended)
			show_more(sock);
	}
}

void sockets_print(const char *text, const struct choice *choice)
{
	static const struct row head = {
		{ "Netid", "State", "Recv-Q", "Send-Q", "Local Address:Port", "Peer Address:Port", "Program/pid" },
	};
	struct table table = { .choice = choice };

	for (int pass = 0; pass < 2; pass++) {
		const char *program = json_text_first(json_text_member(text, "programs"));

		table.print = pass;
		show_row(&table, &head);
		for (; program; program = json_text_next(program))
			show_program(&table, program);
	}
}
