/* SPDX-License-Identifier: Apache-2.0 */
/**
 * What reading the time service costs, and whether a reading is ever torn or goes backwards.
 *
 *   timeservice-load cost PAGE BLOCKS       the system's clock and the library by turns: ns a reading of each block
 *   timeservice-load stress PAGE READS      a writer that publishes all the time, and two readers, as threads
 *   timeservice-load write PAGE             the writer alone, until its input ends
 *   timeservice-load read PAGE READS        a reader alone
 *   timeservice-load unchecked PAGE READS   one that copies lines without a look at their sequence: it has to find torn ones
 *
 * The last line is JSON. Exit code 1: something was torn or went backwards.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "port/port.h"
#include "counter.h"
#include "lines.h"
#include "port/port_timeservice.h"
#include "port_test_system.h"
#include "random.h"

enum { BLOCK_READS = 4000, READERS = 2, WARM_UP = 100000, ROUND_LINES = 100000, ROUND_BURSTS = 1000, BURST_LINES = 8 };

#define BURST_SLEEP_NS 20000

struct reader {
	const char *path;
	uint64_t reads, torn, backwards, failed, publications_seen;
};

struct writer {
	struct timepage *page;
	atomic_bool end;
	uint64_t publications;
};

/* ---- cost -------------------------------------------------------------------------------------------------------- */

enum way { WAY_SYSTEM, WAY_NS, WAY_STAMP, WAY_NTP, WAY_ORDERED, WAY_ORDERED_STAMP, WAY_COUNTER, WAYS };

static double block_ns(enum way way, struct bwtime *handle, struct bwtime *ordered)
{
	volatile int64_t sink;
	int64_t begin_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC), utc_ns = 0;
	struct bwtime_stamp stamp = { .utc_ns = 0 };
	uint64_t ntp = 0;

	for (int i = 0; i < BLOCK_READS; i++) {
		switch (way) {
		case WAY_SYSTEM:
			utc_ns += port_test_clock_read();
			break;
		case WAY_NS:
			bwtime_now_ns(handle, &utc_ns);
			break;
		case WAY_STAMP:
			bwtime_now(handle, &stamp);
			break;
		case WAY_NTP:
			bwtime_now_ntp(handle, &ntp, NULL);
			break;
		case WAY_ORDERED:
			bwtime_now_ns(ordered, &utc_ns);
			break;
		case WAY_ORDERED_STAMP:
			bwtime_now(ordered, &stamp);
			break;
		case WAY_COUNTER:
			utc_ns += (int64_t)test_counter();
			break;
		case WAYS:
			break;
		}
	}
	sink = utc_ns + stamp.utc_ns + (int64_t)ntp;
	(void)sink;
	return (double)(port_clock_now_ns(PORT_CLOCK_MONOTONIC) - begin_monotonic_ns) / BLOCK_READS;
}

static void print_costs(const double *found, uint64_t blocks)
{
	static const char *const names[WAYS] = { "system_ns", "now_ns", "stamp_ns", "ntp_ns", "ordered_ns", "ordered_stamp_ns", "counter_ns" };

	putchar('{');
	for (int way = 0; way < WAYS; way++) {
		printf("%s\"%s\":[", way ? "," : "", names[way]);
		for (uint64_t block = 0; block < blocks; block++)
			printf("%s%.3f", block ? "," : "", found[(uint64_t)way * blocks + block]);
		putchar(']');
	}
	puts("}");
}

static int cost(const char *path, uint64_t blocks)
{
	struct bwtime *handle, *ordered;
	struct timepage *page;
	struct timepage_line line = lines_make(1, test_counter());
	int64_t utc_ns;
	double *found;

	if (timepage_create(path, test_counter_kind(), 0, &page) || timepage_publish(page, &line) ||
	    bwtime_open(path, 0, &handle) || bwtime_open(path, BWTIME_ORDERED, &ordered)) {
		fputs("cannot set up\n", stderr);
		return 2;
	}
	for (int i = 0; i < WARM_UP; i++)
		port_test_clock_read();
	if (bwtime_now_ns(handle, &utc_ns) || bwtime_now_ns(ordered, &utc_ns)) {
		fprintf(stderr, "no time: %s\n", bwtime_why(handle));
		return 2;
	}
	found = calloc(blocks * WAYS, sizeof(*found));
	if (!found)
		return 2;
	for (uint64_t block = 0; block < blocks; block++) {
		for (int way = 0; way < WAYS; way++)
			found[(uint64_t)way * blocks + block] = block_ns((enum way)way, handle, ordered);
	}
	print_costs(found, blocks);
	free(found);
	bwtime_close(ordered);
	bwtime_close(handle);
	timepage_close(page);
	return 0;
}

/* ---- readings under constant updates ----------------------------------------------------------------------------- */

static void write_one(struct writer *writer)
{
	struct timepage_line line = lines_make(writer->publications++, test_counter());

	if (timepage_publish(writer->page, &line))
		abort();
}

/*
 * As fast as it can, which meets readers on other processors; and by turns in short bursts after short sleeps, which meet those
 * that it takes the processor from, in the midst of a reading.
 */
static void write_all_the_time(void *argument)
{
	struct writer *writer = argument;
	struct random random = { 1 };

	while (!atomic_load_explicit(&writer->end, memory_order_relaxed)) {
		for (int i = 0; i < ROUND_LINES; i++)
			write_one(writer);
		for (int burst = 0; burst < ROUND_BURSTS && !atomic_load_explicit(&writer->end, memory_order_relaxed); burst++) {
			for (int64_t count = random_between(&random, 1, BURST_LINES); count > 0; count--)
				write_one(writer);
			port_sleep_ns(random_between(&random, 1, BURST_SLEEP_NS));
		}
	}
}

static void read_all(void *argument)
{
	struct reader *reader = argument;
	struct bwtime *handle;
	struct bwtime_stamp stamp;
	int64_t last_utc_ns = INT64_MIN;
	int32_t last_kind = -1;
	uint64_t before;

	if (bwtime_open(reader->path, 0, &handle)) {
		reader->failed = reader->reads;
		return;
	}
	before = test_counter();
	for (uint64_t i = 0; i < reader->reads; i++) {
		int err = bwtime_now(handle, &stamp);
		uint64_t after = test_counter();

		reader->failed += err != 0;
		if (!err) {
			reader->torn += !lines_whole(&stamp, before, after);
			reader->backwards += stamp.utc_ns < last_utc_ns;
			reader->publications_seen += stamp.tai_utc_s != last_kind;
			last_utc_ns = stamp.utc_ns;
			last_kind = stamp.tai_utc_s;
		}
		before = after;
	}
	bwtime_close(handle);
}

/* What a reader finds that does not look at the sequence: the test of this test. */
static int read_unchecked(const char *path, uint64_t reads)
{
	struct timepage_line_posting copy;
	const struct timepage_image *image;
	struct port_timepage file;
	struct timepage_line line;
	uint64_t torn = 0;
	uint32_t sequence;

	if (port_timepage_open(path, TIMEPAGE_BYTES, &file))
		return 2;
	image = file.readable;
	memset(&copy, 0, sizeof(copy));
	for (uint64_t i = 0; i < reads; i++) {
		for (int word = 0; word < TIMEPAGE_LINE_WORDS; word++)
			atomic_store_explicit(&copy.copies[0][word],
					      atomic_load_explicit(&image->line.copies[0][word], memory_order_relaxed),
					      memory_order_relaxed);
		torn += timepage_line_read(&copy, &line, &sequence) != 0 || !lines_copied_whole(&line);
	}
	port_timepage_close(&file);
	printf("{\"reads\":%" PRIu64 ",\"torn\":%" PRIu64 "}\n", reads, torn);
	return 0;
}

static int tell(const struct reader *readers, int count, uint64_t publications)
{
	struct reader sum = { .path = NULL };

	for (int i = 0; i < count; i++) {
		sum.reads += readers[i].reads;
		sum.torn += readers[i].torn;
		sum.backwards += readers[i].backwards;
		sum.failed += readers[i].failed;
		sum.publications_seen += readers[i].publications_seen;
	}
	printf("{\"reads\":%" PRIu64 ",\"torn\":%" PRIu64 ",\"backwards\":%" PRIu64 ",\"failed\":%" PRIu64 ",\"changes_seen\":%" PRIu64
	       ",\"publications\":%" PRIu64 "}\n", sum.reads, sum.torn, sum.backwards, sum.failed, sum.publications_seen, publications);
	fflush(stdout);
	return sum.torn || sum.backwards || sum.failed || sum.publications_seen < 2;
}

static int begin_writer(struct writer *writer, const char *path, struct port_thread **thread)
{
	struct timepage_line first = lines_make(0, test_counter());

	if (timepage_create(path, test_counter_kind(), 0, &writer->page) || timepage_publish(writer->page, &first) ||
	    port_thread_start("writer", 0, PORT_CPU_ANY, write_all_the_time, writer, thread)) {
		fputs("cannot set up\n", stderr);
		return 2;
	}
	return 0;
}

static void end_writer(struct writer *writer, struct port_thread *thread)
{
	atomic_store(&writer->end, true);
	port_thread_join(thread);
	timepage_close(writer->page);
}

static int stress(const char *path, uint64_t reads)
{
	struct writer writer = { .publications = 0 };
	struct reader readers[READERS];
	struct port_thread *thread, *threads[READERS];

	if (begin_writer(&writer, path, &thread))
		return 2;
	for (int i = 0; i < READERS; i++) {
		readers[i] = (struct reader){ .path = path, .reads = reads / READERS };
		if (port_thread_start("reader", 0, PORT_CPU_ANY, read_all, &readers[i], &threads[i]))
			return 2;
	}
	for (int i = 0; i < READERS; i++)
		port_thread_join(threads[i]);
	end_writer(&writer, thread);
	return tell(readers, READERS, writer.publications);
}

static int write_until_told(const char *path)
{
	struct writer writer = { .publications = 0 };
	struct port_thread *thread;

	if (begin_writer(&writer, path, &thread))
		return 2;
	puts("ready");
	fflush(stdout);
	while (getchar() != EOF)
		;
	end_writer(&writer, thread);
	printf("{\"publications\":%" PRIu64 "}\n", writer.publications);
	return 0;
}

int main(int argc, char **argv)
{
	uint64_t count = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;

	if (port_init())
		return 2;
	if (argc == 4 && count && strcmp(argv[1], "cost") == 0)
		return cost(argv[2], count);
	if (argc == 4 && count && strcmp(argv[1], "stress") == 0)
		return stress(argv[2], count);
	if (argc == 3 && strcmp(argv[1], "write") == 0)
		return write_until_told(argv[2]);
	if (argc == 4 && count && strcmp(argv[1], "read") == 0) {
		struct reader reader = { .path = argv[2], .reads = count };

		read_all(&reader);
		return tell(&reader, 1, 0);
	}
	if (argc == 4 && count && strcmp(argv[1], "unchecked") == 0)
		return read_unchecked(argv[2], count);
	fputs("usage: timeservice-load cost|stress|write|read|unchecked PAGE [COUNT]\n", stderr);
	return 2;
}
