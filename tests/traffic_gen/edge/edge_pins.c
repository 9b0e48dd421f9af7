/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Works the pins of the bench's edge device as software of a target does, and prints what it did as JSON.
 *
 *     edge-pins PAGE|- periodic PIN START_NS PERIOD_NS DURATION_MS    a reference; PIN: sdp-out, card-pps
 *     edge-pins PAGE|- fire COUNT PERIOD_TICKS LEAD_TICKS             tgpio-out, from LEAD_TICKS after now
 *     edge-pins PAGE|- toggle COUNT PERIOD_US                         gpio, each rise and fall
 *     edge-pins PAGE|- capture PIN COUNT TIMEOUT_MS                   tgpio-in, sdp-in
 *     edge-pins PAGE|- latch COUNT PERIOD_US                          gpio seen by sdp-in
 *     edge-pins PAGE|- phc PATH COUNT PERIOD_US                       "counter, PHC, counter": shortest of 10 readings
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "edge/pins/pin.h"
#include "port/port.h"
#include "port/port_clock.h"

static const char *page;

static void open_pin(struct edge_pin *pin, const char *name)
{
	char argument[400], error[EDGE_PIN_ERROR_BYTES];

	memset(pin, 0, sizeof(*pin));
	if (page)
		snprintf(argument, sizeof(argument), "%s,%s", name, page);
	else
		snprintf(argument, sizeof(argument), "%s", name);
	pin->kind = &edge_pin_bench;
	if (pin->kind->open(pin, argument, error, sizeof(error))) {
		fprintf(stderr, "%s: %s\n", name, error);
		exit(3);
	}
}

static void must(int err, const char *what)
{
	if (err) {
		fprintf(stderr, "%s: %s\n", what, strerror(-err));
		exit(4);
	}
}

static void ready(void)
{
	puts("{\"type\":\"ready\"}");
	fflush(stdout);
}

static void close_counted(struct edge_pin *pin)
{
	struct edge_pin_counts counts;

	port_sleep_ns(INT64_C(50000000)); /* until the device has gone beyond the last instant */
	must(pin->kind->counts(pin, &counts), "counts");
	printf("],\"fired\":%" PRIu64 ",\"not_fired\":%" PRIu64 ",\"overruns\":%" PRIu64 ",\"counter_hz\":%" PRIu64 "}\n",
	       counts.fired, counts.not_fired, counts.overruns, pin->counter_hz);
	pin->kind->close(pin);
}

static void periodic(char **argv)
{
	struct edge_pin pin;
	int64_t end_monotonic_ns;

	open_pin(&pin, argv[0]);
	must(pin.kind->periodic(&pin, atoll(argv[1]), atoll(argv[2])), "periodic");
	ready();
	end_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC) + atoll(argv[3]) * 1000000;
	while (!port_stop_requested() && port_clock_now_ns(PORT_CLOCK_MONOTONIC) < end_monotonic_ns)
		port_sleep_ns(1000000);
	printf("{\"type\":\"result\",\"done\":[");
	close_counted(&pin);
}

static void fire(char **argv)
{
	struct edge_pin pin;
	int64_t period = atoll(argv[1]), instant;
	const char *comma = "";

	open_pin(&pin, "tgpio-out");
	ready();
	printf("{\"type\":\"result\",\"done\":[");
	instant = (int64_t)port_counter_read() + atoll(argv[2]);
	for (int i = 0; i < atoi(argv[0]); i++, instant += period) {
		/* The one pending value must have fired. */
		while ((int64_t)port_counter_read() < instant - period / 2)
			port_sleep_ns(100000);
		must(pin.kind->fire_at(&pin, instant), "fire_at");
		printf("%s%" PRId64, comma, instant);
		comma = ",";
	}
	while ((int64_t)port_counter_read() < instant)
		port_sleep_ns(1000000);
	close_counted(&pin);
}

static void toggle(char **argv)
{
	struct edge_pin pin;
	uint64_t before, after;
	const char *comma = "";

	open_pin(&pin, "gpio");
	ready();
	printf("{\"type\":\"result\",\"done\":[");
	for (int i = 0; i < 2 * atoi(argv[0]); i++) {
		must(pin.kind->set(&pin, i % 2 == 0, &before, &after), "set");
		printf("%s[%" PRIu64 ",%" PRIu64 "]", comma, before, after);
		comma = ",";
		port_sleep_ns(atoll(argv[1]) * 500);
	}
	close_counted(&pin);
}

static void capture(char **argv)
{
	struct edge_pin pin;
	uint64_t sequence;
	int64_t instant;
	const char *comma = "";

	open_pin(&pin, argv[0]);
	must(pin.kind->capture_begin(&pin), "capture_begin");
	ready();
	printf("{\"type\":\"result\",\"done\":[");
	for (int i = 0; i < atoi(argv[1]); i++) {
		if (pin.kind->capture_next(&pin, &sequence, &instant, atoll(argv[2]) * 1000000))
			break;
		printf("%s[%" PRIu64 ",%" PRId64 "]", comma, sequence, instant);
		comma = ",";
	}
	close_counted(&pin);
}

static void latch(char **argv)
{
	struct edge_pin out, in;
	uint64_t before, after, sequence;
	int64_t instant;
	const char *comma = "";

	open_pin(&out, "gpio");
	open_pin(&in, "sdp-in");
	must(in.kind->capture_begin(&in), "capture_begin");
	ready();
	printf("{\"type\":\"result\",\"done\":[");
	for (int i = 0; i < atoi(argv[0]); i++) {
		must(out.kind->set(&out, true, &before, &after), "set");
		must(in.kind->capture_next(&in, &sequence, &instant, INT64_C(2000000000)), "capture_next");
		must(out.kind->set(&out, false, NULL, NULL), "set");
		printf("%s[%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRId64 "]", comma, before, after, sequence, instant);
		comma = ",";
		port_sleep_ns(atoll(argv[1]) * 1000);
	}
	in.kind->close(&in);
	close_counted(&out);
}

/* The first readings after a pause are slow, and the PHC is not read in their middle. */
static void phc(char **argv)
{
	struct port_phc *clock;
	const char *comma = "";

	must(port_phc_open(argv[0], &clock), argv[0]);
	ready();
	printf("{\"type\":\"result\",\"done\":[");
	for (int i = 0; i < atoi(argv[1]); i++) {
		uint64_t best_before = 0, best_after = UINT64_MAX;
		int64_t best_ns = 0;

		for (int reading = 0; reading < 10; reading++) {
			uint64_t before = port_counter_read(), after;
			int64_t phc_ns;

			must(port_phc_now_ns(clock, &phc_ns), "phc");
			after = port_counter_read();
			if (after - before < best_after - best_before) {
				best_before = before;
				best_after = after;
				best_ns = phc_ns;
			}
		}
		printf("%s[%" PRIu64 ",%" PRId64 ",%" PRIu64 "]", comma, best_before, best_ns, best_after);
		comma = ",";
		port_sleep_ns(atoll(argv[2]) * 1000);
	}
	puts("]}");
	port_phc_close(clock);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(char **argv);
		int arguments;
	} verbs[] = {
		{ "periodic", periodic, 4 }, { "fire", fire, 3 }, { "toggle", toggle, 2 }, { "capture", capture, 3 }, { "latch", latch, 2 },
		{ "phc", phc, 3 },
	};

	if (argc < 3)
		return 2;
	must(port_init(), "port");
	port_stop_install();
	page = strcmp(argv[1], "-") == 0 ? NULL : argv[1];
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		if (strcmp(argv[2], verbs[i].name) == 0 && argc == 3 + verbs[i].arguments) {
			verbs[i].run(argv + 3);
			return 0;
		}
	}
	fputs("edge-pins: no such verb\n", stderr);
	return 2;
}
