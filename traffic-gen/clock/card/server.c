/* SPDX-License-Identifier: Apache-2.0 */
/* The server sleeps about 1 ms between looks at its pages; only while somebody calibrates it looks all the time (spin.h). */
#include "clock/card/server.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/time_units.h"

#define PUBLISH_NS (20 * NS_PER_MS)
#define NAP_NS NS_PER_MS
#define SOURCE_AGE_MAX_NS (200 * NS_PER_MS) /* of a line that is turned into other units */

enum { BURST = 5, LOOKS = 32 };

static uint64_t units_now(enum card_unit unit)
{
	return unit == CARD_UNIT_TSC ? port_counter_read() : (uint64_t)port_clock_now_ns(PORT_CLOCK_MONOTONIC);
}

/* Answer what is asked on the pages. Return the number of answers. */
static uint64_t answer(struct server *server)
{
	uint64_t answers = 0;

	for (size_t i = 0; i < server->page_count; i++) {
		struct served *served = &server->pages[i];
		struct card_page *page = served->page;
		uint32_t number = atomic_load_explicit(&page->request.number, memory_order_acquire);
		uint32_t unit;

		if (number == served->answered_number)
			continue;
		unit = atomic_load_explicit(&page->request.unit, memory_order_relaxed);
		if (unit == CARD_UNIT_NS || (unit == CARD_UNIT_TSC && port_counter_kind() == PORT_COUNTER_TSC)) {
			served->unit = (enum card_unit)unit;
			atomic_store_explicit(&page->reply.counter, units_now(served->unit), memory_order_relaxed);
			atomic_store_explicit(&page->reply.number, number, memory_order_release);
			served->answered++;
			answers++;
		}
		served->answered_number = number;
	}
	return answers;
}

/* Read the source's clock between two readings of a counter, and feed it to the sampler of that counter's unit. */
static int sample_source(struct server *server, enum card_unit unit)
{
	struct sampler *sampler = &server->samplers[unit - 1];
	const struct card_line *line = &server->source_line;
	int64_t tai_ns, bound_ns = 0;
	int err = 0;

	for (int i = 0; i < BURST && !err; i++) {
		uint64_t before = units_now(unit), after;

		if (server->source)
			err = card_line_at(line, units_now(line->unit), &tai_ns, &bound_ns);
		else
			tai_ns = port_tai_now_ns(&server->tai);
		after = units_now(unit);
		if (!err)
			sampler_take(sampler, before, tai_ns, after, bound_ns);
	}
	return err;
}

/* Take the line that the source publishes on its page, if it is fresh. */
static int take_source_line(struct server *server)
{
	struct card_line line;
	int err = card_posting_read(&server->source->page->guest_line, &line);

	if (!err && line.unit == CARD_UNIT_TSC && port_counter_kind() != PORT_COUNTER_TSC)
		err = -EBADMSG;
	if (!err)
		err = card_line_at(&line, units_now(line.unit), NULL, NULL);
	if (err) {
		server->source_missing++;
		server->source_refused += err == -EBADMSG;
		return err;
	}
	server->source_line = line;
	memcpy(server->source_line.source, server->source->name, sizeof(server->source->name));
	return 0;
}

/* Make the line for pages of one unit. Return 0, or -errno when there is none now. */
static int line_of_unit(struct server *server, enum card_unit unit, struct card_line *line)
{
	int err;

	if (server->source && server->source_line.unit == unit) {
		*line = server->source_line;
		return 0;
	}
	/* An old line would be drawn out twice, here and by its reader. */
	if (server->source && card_line_age_ns(&server->source_line, units_now(server->source_line.unit)) > SOURCE_AGE_MAX_NS)
		return -ETIME;
	err = sample_source(server, unit);
	if (!err)
		err = sampler_line(&server->samplers[unit - 1], line);
	line->unit = unit;
	line->tai_utc_s = server->source ? server->source_line.tai_utc_s : server->tai.tai_utc_s;
	if (server->source)
		line->steps += server->source_line.steps;
	memset(line->source, 0, sizeof(line->source));
	snprintf(line->source, sizeof(line->source), "%s", server->source ? server->source->name : "host");
	return err;
}

static void publish(struct server *server)
{
	struct card_line lines[SERVER_UNITS];
	bool made[SERVER_UNITS] = { false };

	if (server->source && take_source_line(server))
		return; /* what was published grows old, and stale after a second */
	for (size_t i = 0; i < server->page_count; i++) {
		struct served *served = &server->pages[i];
		int unit = (int)served->unit - 1;

		if (!made[unit] && line_of_unit(server, served->unit, &lines[unit]))
			continue;
		made[unit] = true;
		lines[unit].published = ++served->published;
		atomic_store_explicit(&served->page->magic, CARD_MAGIC, memory_order_relaxed);
		card_posting_write(&served->page->host_line, &lines[unit]);
	}
}

void server_run(void *argument)
{
	struct server *server = argument;
	int64_t next_monotonic_ns = 0;

	spin_init(&server->spin, server->cpu == PORT_CPU_ANY);
	while (!port_stop_requested()) {
		uint64_t answers = 0;
		int64_t now_monotonic_ns;

		for (int look = 0; look < LOOKS; look++)
			answers += answer(server);
		now_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);
		if (now_monotonic_ns >= server->end_monotonic_ns)
			break;
		if (now_monotonic_ns >= next_monotonic_ns) {
			publish(server);
			next_monotonic_ns = now_monotonic_ns + PUBLISH_NS;
		}
		if (!spin_on(&server->spin, now_monotonic_ns, answers))
			port_sleep_ns(NAP_NS);
	}
}
