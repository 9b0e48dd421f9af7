/* SPDX-License-Identifier: Apache-2.0 */
/* What threads hand to each other without locks: the ring, and the line of a clock. Run with real threads. */
#include <errno.h>
#include <stdatomic.h>

#include "check.h"
#include "time/clockline.h"
#include "port/port.h"
#include "base/ring.h"

enum { CAPACITY = 64, ENTRIES = 200000, PUBLICATIONS = 200000, READS = 200000 };

struct entry {
	uint64_t number, squared;
};

static void push_all(void *argument)
{
	struct ring *ring = argument;

	for (uint64_t i = 1; i <= ENTRIES; i++) {
		struct entry entry = { i, i * i };

		while (!ring_push(ring, &entry))
			port_thread_yield();
	}
}

static void test_ring_keeps_order(void)
{
	struct ring ring;
	struct port_thread *thread;
	uint64_t expected = 1, wrong = 0;

	CHECK_INT(ring_create(&ring, CAPACITY, sizeof(struct entry)), 0);
	CHECK_INT(port_thread_start("push", 0, PORT_CPU_ANY, push_all, &ring, &thread), 0);
	while (expected <= ENTRIES) {
		struct entry entry;

		if (!ring_pop(&ring, &entry)) {
			port_thread_yield();
			continue;
		}
		wrong += entry.number != expected || entry.squared != expected * expected;
		expected++;
	}
	port_thread_join(thread);
	CHECK_INT(wrong, 0);
	ring_destroy(&ring);
}

static void test_ring_counts_what_it_drops(void)
{
	struct ring ring;
	struct entry entry = { 1, 1 };

	CHECK_INT(ring_create(&ring, 3, sizeof(entry)), -EINVAL);
	CHECK_INT(ring_create(&ring, 4, sizeof(entry)), 0);
	for (int i = 0; i < 4; i++)
		CHECK(ring_push(&ring, &entry));
	CHECK(!ring_push(&ring, &entry));
	CHECK_INT(ring_dropped(&ring), 1);
	CHECK(ring_pop(&ring, &entry));
	CHECK(ring_push(&ring, &entry));
	ring_destroy(&ring);
}

struct publisher {
	struct clockline line;
	atomic_bool stop;
};

static void publish_all(void *argument)
{
	struct publisher *publisher = argument;

	for (int64_t i = 1; !atomic_load(&publisher->stop); i++) {
		struct twoway_line line = { .valid = true, .at_local_ns = i, .offset_ns = 3 * i, .rate_ppb = -i,
					    .bound_ns = 7 * i, .bound_growth_ppb = i + 1, .wander_ppb_per_s = i };

		clockline_publish(&publisher->line, &line);
	}
}

/* A reader must see whole lines only, and never an older one after a newer one. */
static void test_clockline_is_never_torn(void)
{
	static struct publisher publisher;
	struct port_thread *thread;
	uint64_t torn = 0, backward = 0, reads = 0;
	int64_t last = 0;

	clockline_init(&publisher.line);
	CHECK(!clockline_read(&publisher.line).valid);
	CHECK_INT(port_thread_start("publish", 0, PORT_CPU_ANY, publish_all, &publisher, &thread), 0);
	while (reads < READS || last < PUBLICATIONS) {
		struct twoway_line line = clockline_read(&publisher.line);
		int64_t i = line.at_local_ns;

		reads++;
		if (!line.valid)
			continue;
		torn += line.offset_ns != 3 * i || line.rate_ppb != -i || line.bound_ns != 7 * i ||
			line.bound_growth_ppb != i + 1 || line.wander_ppb_per_s != i;
		backward += i < last;
		last = i;
	}
	atomic_store(&publisher.stop, true);
	port_thread_join(thread);
	CHECK_INT(torn, 0);
	CHECK_INT(backward, 0);
}

int main(void)
{
	test_ring_keeps_order();
	test_ring_counts_what_it_drops();
	test_clockline_is_never_torn();
	return check_result();
}
