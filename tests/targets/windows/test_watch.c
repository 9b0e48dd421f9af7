/* SPDX-License-Identifier: Apache-2.0 */
/** The way of calls into the record, and what kind of program a file is: what of bw-accel is the same on any system. */
#include "../../traffic_gen/check.h"

#include <stdlib.h>
#include <string.h>

#include "watch/functions.h"
#include "watch/line.h"
#include "watch/program_header.h"
#include "watch/ring.h"
#include "watch/tuning.h"

static void test_a_full_ring_counts_what_it_loses_and_goes_on(void)
{
	struct watch_ring *ring = malloc(sizeof(*ring));
	struct watch_event event = { 0 };
	int64_t expected = 0;

	CHECK(ring != NULL);
	ring_begin(ring);
	for (int i = 0; i < WATCH_SLOTS + 5; i++) {
		event.result = i;
		CHECK(ring_put(ring, &event) == (i < WATCH_SLOTS));
	}
	CHECK(ring->lost_count == 5);
	for (; ring_take(ring, &event); expected++)
		CHECK(event.result == expected);
	CHECK(expected == WATCH_SLOTS);
	event.result = 7;
	CHECK(ring_put(ring, &event) && ring_take(ring, &event) && event.result == 7);
	CHECK(!ring_skip_hole(ring));
	free(ring);
}

static void test_a_hole_is_skipped_and_counted(void)
{
	struct watch_ring *ring = malloc(sizeof(*ring));
	struct watch_event event = { .result = 9 };

	CHECK(ring != NULL);
	ring_begin(ring);
	ring->put_place++; /* claimed by a process that died before it had filled it */
	CHECK(ring_put(ring, &event));
	event.result = 0;
	CHECK(!ring_take(ring, &event));
	CHECK(ring_skip_hole(ring) && ring->lost_count == 1);
	CHECK(ring_take(ring, &event) && event.result == 9);
	CHECK(!ring_skip_hole(ring));
	free(ring);
}

static const char *line_of(const struct watch_event *event, char text[WATCH_LINE_BYTES + 1])
{
	text[watch_line(event, 10000000, text)] = '\0';
	return text;
}

static void test_lines(void)
{
	struct watch_event event = { .begin_ticks = 30000000001, .end_ticks = 30000000026, .process = 1, .thread = 2, .socket = 3,
				     .function = WATCH_RECV, .result = -1, .error = 10035, .values = { 5, 2 }, .value_mask = 3 };
	char text[WATCH_LINE_BYTES + 1];

	CHECK_TEXT(line_of(&event, text), "{\"process\":1,\"thread\":2,\"begin_monotonic_ns\":3000000000100,\"duration_ns\":2500,"
					  "\"call\":\"peek\",\"function\":\"recv\",\"socket\":3,\"asked\":5,\"flags\":2,"
					  "\"errno\":\"WSAEWOULDBLOCK\"}\n");
	event = (struct watch_event){ .function = WATCH_NOTE, .text = "a \"b\" \\ \n\xc3" };
	CHECK_TEXT(line_of(&event, text), "{\"process\":0,\"thread\":0,\"begin_monotonic_ns\":0,\"note\":\"a \\\"b\\\" \\\\ ??\"}\n");
}

/* The longest line of every function has room, and an end. */
static void test_the_longest_lines(void)
{
	char text[WATCH_LINE_BYTES + 1];

	for (int function = 0; function < WATCH_FUNCTION_COUNT; function++) {
		struct watch_event event;

		memset(&event, 0xff, sizeof(event));
		memset(event.text, '"', sizeof(event.text));
		memset(event.values, 0x80, sizeof(event.values));
		event.function = (uint16_t)function;
		event.ended = WATCH_WSA_RECV_FROM;
		memcpy(event.address, "\x17\x00", 2); /* IPv6 */
		line_of(&event, text);
		CHECK(strcmp(text + strlen(text) - 2, "}\n") == 0);
		CHECK(strlen(text) < WATCH_LINE_BYTES - 64); /* not cut off */
	}
}

static void test_the_first_line_is_always_as_long(void)
{
	struct watch_end end = { UINT64_MAX, UINT64_MAX, "broken off: error 4294967295", "Windows" };
	char head[WATCH_HEAD_BYTES + 1] = { 0 };

	watch_head(&end, head);
	CHECK(strlen(head) == WATCH_HEAD_BYTES && head[WATCH_HEAD_BYTES - 1] == '\n');
	CHECK(strstr(head, "\"lost\":18446744073709551615}") != NULL);
}

static void test_kinds_of_programs(void)
{
	uint8_t head[256] = "MZ";

	head[0x3c] = 0x80;
	memcpy(head + 0x80, "PE\0\0\x64\x86", 6);
	head[0x80 + 22] = 0x02;
	CHECK(program_kind(head, sizeof(head)) == PROGRAM_X86_64);
	for (size_t size = 0; size < 0x80 + 24; size++) /* cut off */
		CHECK(program_kind(head, size) == PROGRAM_NONE);
	head[0x80 + 23] = 0x20;
	CHECK(program_kind(head, sizeof(head)) == PROGRAM_LIBRARY);
	head[0x80 + 23] = 0;
	memcpy(head + 0x84, "\x4c\x01", 2);
	CHECK(program_kind(head, sizeof(head)) == PROGRAM_32_BIT);
	memcpy(head + 0x84, "\x64\xaa", 2);
	CHECK(program_kind(head, sizeof(head)) == PROGRAM_OTHER_MACHINE);
	memcpy(head + 0x3c, "\xff\xff\xff\xff", 4);
	CHECK(program_kind(head, sizeof(head)) == PROGRAM_NONE);
}

static bool reads(struct tuning tunings[TUNE_COUNT], const char *word, const char *said)
{
	char error[TUNING_ERROR_BYTES] = "";

	return tuning_read(tunings, word, error) ? !said : said && strstr(error, said) != NULL;
}

static void test_settings(void)
{
	struct tuning tunings[TUNE_COUNT] = { 0 };

	CHECK(reads(tunings, "no_delay=1", NULL));
	CHECK(tunings[TUNE_NO_DELAY].wanted && tunings[TUNE_NO_DELAY].value == 1);
	CHECK(reads(tunings, "multimedia_class=Pro Audio", NULL));
	CHECK(strcmp(tunings[TUNE_MULTIMEDIA_CLASS].text, "Pro Audio") == 0);
	CHECK(reads(tunings, "receive_buffer_bytes=1073741824", NULL));
	CHECK(reads(tunings, "no_delay=1", "no_delay: is there twice"));
	CHECK(reads(tunings, "send_buffer_bytes=1073741825", "1024 .. 1073741824, found 1073741825"));
	CHECK(reads(tunings, "timer_us=499", "500 .. 15625, found 499"));
	CHECK(reads(tunings, "poll_us=99999999999999999999", "poll_us: must be a whole number"));
	CHECK(reads(tunings, "ack_frequency= 1", "ack_frequency: must be a whole number of 1 .. 255"));
	CHECK(reads(tunings, "ack_frequenc=1", "no such setting; allowed: no_delay, ack_frequency, "));
	CHECK(reads(tunings, "", "must be NAME=VALUE"));
	CHECK(!tunings[TUNE_COUNT - 1].held_count);
}

static void test_settings_as_text(void)
{
	struct tuning tunings[TUNE_COUNT] = { 0 };
	char longest[] = "multimedia_class=1234567890123456789012345678901", longer[] = "multimedia_class=12345678901234567890123456789012";

	CHECK(reads(tunings, longer, "1 .. 31 ASCII characters"));
	CHECK(reads((struct tuning[TUNE_COUNT]){ 0 }, "multimedia_class=\303\244", "1 .. 31 ASCII characters"));
	memset(tunings, 0, sizeof(tunings));
	CHECK(reads(tunings, longest, NULL));
	for (int i = 0; i < TUNE_COUNT; i++)
		CHECK(strlen(tuning_name((enum tuning_name)i)) > 0 && strlen(tuning_owners((enum tuning_name)i)) > 0);
}

int main(void)
{
	test_settings();
	test_settings_as_text();
	test_a_full_ring_counts_what_it_loses_and_goes_on();
	test_a_hole_is_skipped_and_counted();
	test_lines();
	test_the_longest_lines();
	test_the_first_line_is_always_as_long();
	test_kinds_of_programs();
	return check_result();
}
