/* SPDX-License-Identifier: Apache-2.0 */
#include "edge/device/edge_server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/time_units.h"

#define NAP_NS NS_PER_MS
#define ACTIVE_NS (30 * NS_PER_MS)     /* after an edge, progress is told with every look */
#define QUIET_UNTIL_NS (50 * NS_PER_MS)
#define SLICES_PER_S 100               /* a slice holds less than EDGE_BATCH edges of honest guests */

static void take_event(void *sink, const struct edge_event *event)
{
	const struct edge_served *served = sink;
	struct edge_server *server = served->server;

	if (server->batch_count == EDGE_BATCH) {
		server->batch_lost++;
		return;
	}
	server->batch[server->batch_count++] = (struct edge_timed){
		.host_counter = event->counter + served->offset,
		.channel = event->line == EDGE_LINE_REFERENCE ? 1 : 2,
		.rising = event->rising,
	};
}

void edge_server_prepare(struct edge_server *server, struct edge_served *served)
{
	struct edge_registers *registers = served->registers;

	served->server = server;
	atomic_store(&registers->magic, 0);
	device_init(&served->device, registers, server->hz, take_event, served);
	atomic_store(&registers->counter_hz, server->hz);
	atomic_store(&registers->horizon, 0);
	atomic_store(&registers->served, atomic_load(&registers->served) + 1);
	atomic_store(&registers->magic, EDGE_MAGIC);
}

static struct scope_time scope_time(const struct edge_server *server, uint64_t host_counter)
{
	uint64_t seconds = host_counter / server->hz, rest = host_counter % server->hz * NS_PER_S;

	return (struct scope_time){
		.counter_ns = (int64_t)(seconds * NS_PER_S + rest / server->hz),
		.ps = (int)(rest % server->hz * 1000 / server->hz),
	};
}

static int compare_times(const void *a, const void *b)
{
	const struct edge_timed *left = a, *right = b;

	if (left->host_counter != right->host_counter)
		return left->host_counter < right->host_counter ? -1 : 1;
	return left->channel - right->channel;
}

static void tell_batch(struct edge_server *server, int64_t now_monotonic_ns)
{
	if (server->page_count > 1)
		qsort(server->batch, server->batch_count, sizeof(server->batch[0]), compare_times);
	for (size_t i = 0; i < server->batch_count; i++) {
		const struct edge_timed *edge = &server->batch[i];

		scope_sender_edge(&server->scope, edge->channel, scope_time(server, edge->host_counter), edge->rising);
	}
	if (server->batch_count)
		server->last_edge_monotonic_ns = now_monotonic_ns;
	server->batch_count = 0;
}

/* ---- one page ------------------------------------------------------------------------------------------------------ */

/* Take the calibration of a page; a device begins with its first one. */
static void renew_calibration(struct edge_served *served, uint64_t now)
{
	uint64_t offset, bound;

	if (edge_calibration_read(&served->registers->calibration, &offset, &bound) != 0 ||
	    bound > served->device.counter_hz)
		return;
	served->offset = offset;
	served->bound = bound;
	if (!served->active)
		device_begin(&served->device, now - offset);
	served->active = true;
}

/*
 * Tell whether a command is announced that counts. The host's counter was read before: what is announced later has a
 * later tick.
 */
static bool command_pending(struct edge_served *served, int64_t now_monotonic_ns)
{
	bool pending = false;

	for (int id = 0; id < EDGE_OUTPUTS; id++) {
		if (!edge_command_pending(&served->registers->outputs[id])) {
			served->pending_monotonic_ns[id] = 0;
			continue;
		}
		if (!served->pending_monotonic_ns[id])
			served->pending_monotonic_ns[id] = now_monotonic_ns;
		if (served->pending_monotonic_ns[id] < 0)
			continue; /* dead */
		if (now_monotonic_ns - served->pending_monotonic_ns[id] < EDGE_BEGUN_MAX_NS) {
			pending = true;
		} else {
			served->pending_monotonic_ns[id] = -1;
			served->dead_writers++;
		}
	}
	return pending;
}

/*
 * Take a clock's newest line. It may be younger than what is decided next: that was read before, and this process may have
 * been held up since. The line is held against the present.
 */
static void follow_clock(struct edge_served *served, enum edge_clock clock, const struct card_posting *latch, uint64_t offset)
{
	struct device *device = &served->device;
	struct card_line line;
	int err = card_posting_read(latch, &line);
	bool good = err == 0 && line.unit == CARD_UNIT_TSC;

	if (err == -EAGAIN && device->known[clock])
		return; /* it is being renewed; the next look will have it */
	if (good) {
		line.counter -= offset;
		good = card_line_at(&line, port_counter_read() - served->offset, NULL, NULL) == 0;
	}
	if (!good && device->known[clock])
		device_set_line(device, clock, NULL);
	if (good && (!device->known[clock] || device->lines[clock].counter != line.counter ||
		     device->lines[clock].published != line.published))
		device_set_line(device, clock, &line);
}

/* ---- all pages ----------------------------------------------------------------------------------------------------- */

/* Find up to which tick of the host's counter everything can be decided. */
static uint64_t decidable(struct edge_server *server, int64_t now_monotonic_ns)
{
	uint64_t now = port_counter_read(), common = now;

	for (size_t i = 0; i < server->page_count; i++) {
		struct edge_served *served = &server->pages[i];
		uint64_t horizon;

		renew_calibration(served, now);
		if (!served->active)
			continue;
		horizon = command_pending(served, now_monotonic_ns) ? server->horizon : now - served->bound;
		if (horizon < common)
			common = horizon;
	}
	return common;
}

static void decide(struct edge_server *server, uint64_t common, int64_t now_monotonic_ns)
{
	uint64_t slice = server->hz / SLICES_PER_S;

	for (size_t i = 0; i < server->page_count; i++) {
		struct edge_served *served = &server->pages[i];

		if (!served->active)
			continue;
		follow_clock(served, EDGE_CLOCK_PHC, &served->registers->phc_line, 0);
		follow_clock(served, EDGE_CLOCK_CARD, &served->page->host_line, served->offset);
	}
	if (!server->horizon)
		server->horizon = common;
	while (server->horizon < common) {
		server->horizon = common - server->horizon > slice ? server->horizon + slice : common;
		for (size_t i = 0; i < server->page_count; i++) {
			struct edge_served *served = &server->pages[i];

			if (served->active)
				device_advance(&served->device, server->horizon - served->offset);
		}
		tell_batch(server, now_monotonic_ns);
	}
	for (size_t i = 0; i < server->page_count; i++) {
		if (server->pages[i].active)
			atomic_store_explicit(&server->pages[i].registers->horizon, server->pages[i].device.horizon,
					      memory_order_release);
	}
}

static void look(struct edge_server *server, int64_t now_monotonic_ns)
{
	uint64_t common = decidable(server, now_monotonic_ns);
	bool up;

	if (common > server->horizon) {
		decide(server, common, now_monotonic_ns);
		if (now_monotonic_ns - server->last_edge_monotonic_ns < ACTIVE_NS ||
		    now_monotonic_ns - server->last_until_monotonic_ns >= QUIET_UNTIL_NS) {
			scope_sender_until(&server->scope, scope_time(server, server->horizon).counter_ns);
			server->last_until_monotonic_ns = now_monotonic_ns;
		}
	}
	scope_sender_work(&server->scope, now_monotonic_ns);
	up = server->scope.state == SCOPE_UP;
	if (up != server->scope_was_up) {
		server->scope_was_up = up;
		server->on_scope(server);
	}
	server->looks++;
}

void edge_server_run(void *argument)
{
	struct edge_server *server = argument;
	int64_t next_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);

	while (!port_stop_requested()) {
		int64_t now_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);

		if (now_monotonic_ns - next_monotonic_ns > server->late_max_ns)
			server->late_max_ns = now_monotonic_ns - next_monotonic_ns;
		look(server, now_monotonic_ns);
		next_monotonic_ns += NAP_NS;
		if (next_monotonic_ns < now_monotonic_ns)
			next_monotonic_ns = now_monotonic_ns;
		port_clock_sleep_until_ns(PORT_CLOCK_MONOTONIC, next_monotonic_ns);
	}
	look(server, port_clock_now_ns(PORT_CLOCK_MONOTONIC)); /* what was commanded before the end happens */
}
