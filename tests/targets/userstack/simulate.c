/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two stacks and a link between them, in virtual time: the same seed gives the same run. Prints JSON.
 *
 * Exit code 1: a wrong byte, or not all came.
 *
 * Bulk: as many bytes as told, from the first end to the second. Stream: messages at an interval, and how late the last byte of each is.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node.h"

#define FRAME_BYTES 38 /* preamble, header, check sequence and gap of Ethernet */
#define CHUNK_BYTES 32768
#define DROPS_MAX 16

static struct {
	uint64_t bytes, seed, queue_packets, mtu_bytes, message_bytes, messages, interval_us, limit_s, initial_sequence, reorder_us, delay_us,
		outage_at_us, outage_us, hold_at_us, hold_us, slower_at_us, slower_us, ack_delay_us, without_sack, close, ipv6, model;
	double rate_bit_per_s, loss, loss_back, duplicate, reorder;
} options = {.bytes = 20000000, .seed = 1, .queue_packets = 256, .mtu_bytes = 1500, .interval_us = 10000, .limit_s = 600,
	     .initial_sequence = UINT64_MAX, .reorder_us = 50, .delay_us = 50, .ack_delay_us = 100, .rate_bit_per_s = 1e9};

/* The first `times` transmissions of what holds this byte of the stream are lost. */
static struct {
	uint64_t offset, times;
} drops[DROPS_MAX];
static unsigned int drop_count;

static uint64_t now_monotonic_ns, began_monotonic_ns, ended_monotonic_ns, random_state;
static const struct node *nodes[2];
static uint64_t free_monotonic_ns[2];
static uint64_t sent_bytes, received_bytes, to_send_bytes, wrong_bytes, packets[2], lost_packets[2], full_packets[2];
static uint32_t first_sequence;
static bool open_for_sending, closing, ended;
static int end_error;
static uint64_t *latencies_us, latency_count;

/* Packets under way, a heap by the time that they arrive. */
struct packet {
	uint64_t at_monotonic_ns, number;
	int to;
	size_t size_bytes;
	uint8_t *bytes;
};
static struct packet *heap;
static size_t heap_size, heap_room;
static uint64_t heap_number;

static uint64_t random_u64(void)
{
	uint64_t x = random_state += 0x9e3779b97f4a7c15u;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

static bool chance(double probability)
{
	return (double)(random_u64() >> 11) * 0x1p-53 < probability;
}

static uint8_t byte_at(uint64_t offset)
{
	return (uint8_t)((offset * 0x9e3779b97f4a7c15u) >> 56);
}

static bool before(const struct packet *a, const struct packet *b)
{
	return a->at_monotonic_ns < b->at_monotonic_ns || (a->at_monotonic_ns == b->at_monotonic_ns && a->number < b->number);
}

static void push(uint64_t at_monotonic_ns, int to, const uint8_t *bytes, size_t size_bytes)
{
	struct packet added = {at_monotonic_ns, heap_number++, to, size_bytes, malloc(size_bytes)};
	struct packet *larger;
	size_t i = heap_size++;

	if (heap_size > heap_room) {
		heap_room = heap_size * 2;
		larger = realloc(heap, heap_room * sizeof(*heap));
		if (!larger)
			abort();
		heap = larger;
	}
	if (!added.bytes)
		abort();
	memcpy(added.bytes, bytes, size_bytes);
	for (; i > 0 && before(&added, &heap[(i - 1) / 2]); i = (i - 1) / 2)
		heap[i] = heap[(i - 1) / 2];
	heap[i] = added;
}

static struct packet pop(void)
{
	struct packet first = heap[0], last = heap[--heap_size];
	size_t i = 0;

	while (2 * i + 1 < heap_size) {
		size_t child = 2 * i + 1;

		if (child + 1 < heap_size && before(&heap[child + 1], &heap[child]))
			child++;
		if (!before(&heap[child], &last))
			break;
		heap[i] = heap[child];
		i = child;
	}
	heap[i] = last;
	return first;
}

static uint64_t host_now_us(void)
{
	return now_monotonic_ns / 1000;
}

static uint32_t host_random(int end)
{
	if (end == 0 && options.initial_sequence != UINT64_MAX)
		return (uint32_t)options.initial_sequence;
	return (uint32_t)random_u64();
}

static size_t header_bytes(const uint8_t *packet)
{
	return packet[0] >> 4 == 4 ? (size_t)(packet[0] & 15) * 4 : 40;
}

static bool to_drop(const uint8_t *packet, size_t size_bytes)
{
	const uint8_t *tcp = packet + header_bytes(packet);
	uint32_t sequence = (uint32_t)tcp[4] << 24 | (uint32_t)tcp[5] << 16 | (uint32_t)tcp[6] << 8 | tcp[7];
	size_t data_bytes = size_bytes - (size_t)(tcp - packet) - (size_t)(tcp[12] >> 4) * 4;
	uint64_t offset;

	data_bytes += tcp[13] & 1; /* the end of the stream */
	if (tcp[13] & 2)
		first_sequence = sequence + 1;
	offset = sequence - first_sequence;
	for (unsigned int i = 0; i < drop_count; i++) {
		if (drops[i].times > 0 && offset <= drops[i].offset && drops[i].offset < offset + data_bytes) {
			drops[i].times--;
			return true;
		}
	}
	return false;
}

/* Nobody offers SACK: its option becomes padding. */
static void hide_sack(uint8_t *packet, size_t size_bytes)
{
	uint8_t *tcp = packet + header_bytes(packet);

	if (!(tcp[13] & 2))
		return;
	for (uint8_t *option = tcp + 20; option + 1 < packet + size_bytes; option += 2) {
		if (option[0] == 4 && option[1] == 2) {
			uint32_t sum = (uint16_t)~(tcp[16] << 8 | tcp[17]) + (uint16_t)~0x0402u + 0x0101u;

			sum = (sum & 0xffff) + (sum >> 16);
			sum = ~((sum & 0xffff) + (sum >> 16));
			tcp[16] = (uint8_t)(sum >> 8);
			tcp[17] = (uint8_t)sum;
			option[0] = option[1] = 1;
		}
	}
}

/* Whether it is the time of something that begins so long after the first data. */
static bool during(uint64_t at_us, uint64_t duration_us)
{
	uint64_t since_us = (now_monotonic_ns - began_monotonic_ns) / 1000;

	return open_for_sending && duration_us > 0 && since_us >= at_us && since_us - at_us < duration_us;
}

static uint64_t frame_ns_of(size_t size_bytes)
{
	return (uint64_t)((double)(size_bytes + FRAME_BYTES) * 8e9 / options.rate_bit_per_s);
}

static void host_output(int end, uint8_t *packet, size_t size_bytes)
{
	uint64_t queue_ns = options.queue_packets * frame_ns_of(options.mtu_bytes), at_monotonic_ns;

	packets[end]++;
	if (free_monotonic_ns[end] < now_monotonic_ns)
		free_monotonic_ns[end] = now_monotonic_ns;
	if (free_monotonic_ns[end] - now_monotonic_ns > queue_ns) {
		full_packets[end]++;
		return;
	}
	free_monotonic_ns[end] += frame_ns_of(size_bytes);
	at_monotonic_ns = free_monotonic_ns[end] + options.delay_us * 1000;
	if (during(options.slower_at_us, UINT64_MAX))
		at_monotonic_ns += options.slower_us * 1000;
	if (options.without_sack)
		hide_sack(packet, size_bytes);
	if (during(options.outage_at_us, options.outage_us) || (end == 0 && to_drop(packet, size_bytes)) ||
	    chance(end == 0 ? options.loss : options.loss_back)) {
		lost_packets[end]++;
		return;
	}
	if (chance(options.reorder))
		at_monotonic_ns += random_u64() % (options.reorder_us * 1000 + 1);
	push(at_monotonic_ns, 1 - end, packet, size_bytes);
	if (chance(options.duplicate))
		push(at_monotonic_ns + random_u64() % (options.reorder_us * 1000 + 1), 1 - end, packet, size_bytes);
}

static void host_received(int end, const uint8_t *data, size_t size_bytes)
{
	if (end != 1)
		abort();
	for (size_t i = 0; i < size_bytes; i++, received_bytes++) {
		wrong_bytes += data[i] != byte_at(received_bytes);
		if (options.messages > 0 && (received_bytes + 1) % options.message_bytes == 0) {
			uint64_t number = received_bytes / options.message_bytes;

			latencies_us[latency_count++] = (now_monotonic_ns - began_monotonic_ns) / 1000 - number * options.interval_us;
		}
	}
	ended_monotonic_ns = now_monotonic_ns;
}

static uint64_t wanted_bytes(void)
{
	return options.messages > 0 ? options.messages * options.message_bytes : options.bytes;
}

static void send_more(void)
{
	static uint8_t bytes[CHUNK_BYTES];

	while (open_for_sending && sent_bytes < to_send_bytes) {
		uint64_t left = to_send_bytes - sent_bytes;
		size_t size = left < sizeof(bytes) ? (size_t)left : sizeof(bytes), taken;

		for (size_t i = 0; i < size; i++)
			bytes[i] = byte_at(sent_bytes + i);
		taken = nodes[0]->send(bytes, size);
		sent_bytes += taken;
		if (taken < size)
			break;
	}
	if (options.close && !closing && sent_bytes == wanted_bytes()) {
		closing = true;
		nodes[0]->close();
	}
}

static void host_writable(int end)
{
	if (end != 0)
		return;
	if (!open_for_sending)
		began_monotonic_ns = now_monotonic_ns;
	open_for_sending = true;
	send_more();
}

static void host_closed(int end, int error)
{
	(void)end;
	ended = true;
	ended_monotonic_ns = now_monotonic_ns;
	end_error = error;
}

static const struct node_host host = {host_now_us, host_random, host_output, host_received, host_writable, host_closed};

static uint64_t next_event_ns(uint64_t next_message_monotonic_ns)
{
	uint64_t next_monotonic_ns = heap_size > 0 ? heap[0].at_monotonic_ns : UINT64_MAX;

	if (next_message_monotonic_ns < next_monotonic_ns)
		next_monotonic_ns = next_message_monotonic_ns;
	if (during(options.hold_at_us, options.hold_us)) {
		uint64_t end_monotonic_ns = began_monotonic_ns + (options.hold_at_us + options.hold_us) * 1000;

		if (end_monotonic_ns < next_monotonic_ns)
			next_monotonic_ns = end_monotonic_ns;
	}
	for (int end = 0; end < 2; end++) {
		uint64_t timer_us = nodes[end]->next_us();

		if (timer_us < UINT64_MAX / 1000 && timer_us * 1000 < next_monotonic_ns)
			next_monotonic_ns = timer_us * 1000;
	}
	return next_monotonic_ns > now_monotonic_ns ? next_monotonic_ns : now_monotonic_ns;
}

static void run(void)
{
	uint64_t message = 0;

	if (options.messages == 0)
		to_send_bytes = wanted_bytes();
	while (!ended && (received_bytes < wanted_bytes() || options.close) && now_monotonic_ns < options.limit_s * 1000000000u) {
		uint64_t message_monotonic_ns = UINT64_MAX;

		if (open_for_sending && message < options.messages)
			message_monotonic_ns = began_monotonic_ns + message * options.interval_us * 1000;
		now_monotonic_ns = next_event_ns(message_monotonic_ns);
		while (heap_size > 0 && heap[0].at_monotonic_ns <= now_monotonic_ns) {
			struct packet packet = pop();

			nodes[packet.to]->input(packet.bytes, packet.size_bytes);
			free(packet.bytes);
		}
		if (message_monotonic_ns <= now_monotonic_ns) {
			to_send_bytes += options.message_bytes;
			message++;
			send_more();
		}
		if (options.hold_us > 0)
			nodes[1]->hold(during(options.hold_at_us, options.hold_us));
		nodes[0]->advance();
		nodes[1]->advance();
	}
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void print_counts(const char *name, const struct recovery *recovery, const char *after)
{
	const struct recovery_counts *counts = &recovery->counts;

	printf("\"%s\": {\"sent_segments\": %" PRIu64 ", \"retransmitted_segments\": %" PRIu64 ", \"by_rack\": %" PRIu64 ", \"by_probe\": %" PRIu64
	       ", \"by_timeout\": %" PRIu64 ", \"duplicate_segments\": %" PRIu64 ", \"smoothed_rtt_us\": %" PRIu64 ", \"in_flight_bytes\": %" PRIu32
	       ", \"lost_bytes\": %" PRIu32 "}%s",
	       name, counts->sent_segments, counts->retransmitted_segments, counts->by_rack, counts->by_probe, counts->by_timeout,
	       counts->duplicate_segments, recovery->smoothed_rtt_us, recovery->in_flight_bytes, recovery->lost_bytes, after);
}

static void print_results(void)
{
	struct recovery sender = nodes[0]->recovery(), receiver = nodes[1]->recovery();
	double seconds = (double)(ended_monotonic_ns - began_monotonic_ns) * 1e-9;

	printf("{\"received_bytes\": %" PRIu64 ", \"wrong_bytes\": %" PRIu64 ", \"seconds\": %.6f, \"goodput_bytes_per_s\": %.0f, \"error\": %d, ",
	       received_bytes, wrong_bytes, seconds, seconds > 0 ? (double)received_bytes / seconds : 0, end_error);
	printf("\"lost_packets\": [%" PRIu64 ", %" PRIu64 "], \"full_packets\": [%" PRIu64 ", %" PRIu64 "], ", lost_packets[0], lost_packets[1],
	       full_packets[0], full_packets[1]);
	if (latency_count > 0) {
		printf("\"latencies_us\": [");
		for (uint64_t i = 0; i < latency_count; i++)
			printf("%s%" PRIu64, i > 0 ? ", " : "", latencies_us[i]);
		qsort(latencies_us, latency_count, sizeof(*latencies_us), compare);
		printf("], \"median_us\": %" PRIu64 ", \"p99_us\": %" PRIu64 ", \"p999_us\": %" PRIu64 ", \"max_us\": %" PRIu64 ", ",
		       latencies_us[latency_count / 2], latencies_us[latency_count * 99 / 100], latencies_us[latency_count * 999 / 1000],
		       latencies_us[latency_count - 1]);
	}
	print_counts("sender", &sender, ", ");
	print_counts("receiver", &receiver, "}\n");
}

static void die(const char *what, const char *value)
{
	fprintf(stderr, "simulate: %s: %s\n", what, value);
	exit(2);
}

static void take_option(const char *name, const char *text)
{
	const struct {
		const char *name;
		uint64_t *number;
		double *real;
	} all[] = {{"--bytes", &options.bytes, NULL}, {"--seed", &options.seed, NULL}, {"--queue-packets", &options.queue_packets, NULL},
		   {"--mtu-bytes", &options.mtu_bytes, NULL}, {"--message-bytes", &options.message_bytes, NULL},
		   {"--messages", &options.messages, NULL}, {"--interval-us", &options.interval_us, NULL}, {"--limit-s", &options.limit_s, NULL},
		   {"--outage-at-us", &options.outage_at_us, NULL}, {"--outage-us", &options.outage_us, NULL},
		   {"--hold-at-us", &options.hold_at_us, NULL}, {"--hold-us", &options.hold_us, NULL},
		   {"--slower-at-us", &options.slower_at_us, NULL}, {"--slower-us", &options.slower_us, NULL},
		   {"--ack-delay-us", &options.ack_delay_us, NULL}, {"--without-sack", &options.without_sack, NULL},
		   {"--close", &options.close, NULL}, {"--ipv6", &options.ipv6, NULL}, {"--model", &options.model, NULL},
		   {"--initial-sequence", &options.initial_sequence, NULL}, {"--reorder-us", &options.reorder_us, NULL},
		   {"--delay-us", &options.delay_us, NULL}, {"--rate-bit-per-s", NULL, &options.rate_bit_per_s}, {"--loss", NULL, &options.loss},
		   {"--loss-back", NULL, &options.loss_back}, {"--duplicate", NULL, &options.duplicate}, {"--reorder", NULL, &options.reorder}};
	char *rest = NULL;

	if (!text)
		die(name, "a value is missing");
	if (strcmp(name, "--drop") == 0) {
		if (drop_count == DROPS_MAX)
			die(name, "at most 16 times");
		drops[drop_count].offset = strtoull(text, &rest, 0);
		drops[drop_count].times = *rest == 'x' ? strtoull(rest + 1, &rest, 0) : 1;
		drop_count++;
	} else {
		size_t i = 0;

		while (i < sizeof(all) / sizeof(*all) && strcmp(name, all[i].name) != 0)
			i++;
		if (i == sizeof(all) / sizeof(*all))
			die(name, "no such option");
		if (all[i].number)
			*all[i].number = strtoull(text, &rest, 0);
		else
			*all[i].real = strtod(text, &rest);
	}
	if (rest == text || *rest)
		die(name, text);
}

/* Both ends have the same globals, by design. */
const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
	return "detect_odr_violation=0";
}

int main(int argc, char **argv)
{
	if (argc < 3) {
		fprintf(stderr, "Usage: simulate END_LIBRARY END_LIBRARY [--OPTION VALUE]...\n");
		return 2;
	}
	for (int i = 3; i < argc; i += 2)
		take_option(argv[i], argv[i + 1]);
	random_state = options.seed;
	if (options.messages > 0 && options.message_bytes == 0)
		die("--message-bytes", "is at least 1");
	latencies_us = calloc(options.messages + 1, sizeof(*latencies_us));
	for (int end = 0; end < 2; end++) {
		void *library = dlopen(argv[1 + end], RTLD_NOW | RTLD_LOCAL);

		if (!library)
			die(argv[1 + end], dlerror());
		nodes[end] = dlsym(library, "node");
	}
	if (!latencies_us || !nodes[0] || !nodes[1] || nodes[0] == nodes[1])
		die(argv[2], "is no other end");
	for (int end = 0; end < 2 && options.model; end++)
		nodes[end]->use_model();
	for (int end = 0; end < 2; end++)
		nodes[end]->begin(&host, end, (unsigned int)options.mtu_bytes, options.ipv6 != 0);
	nodes[1]->limits->ack_delay_us = options.ack_delay_us;
	nodes[1]->listen();
	nodes[0]->connect();
	run();
	print_results();
	return wrong_bytes > 0 || end_error != 0 || received_bytes < wanted_bytes();
}
