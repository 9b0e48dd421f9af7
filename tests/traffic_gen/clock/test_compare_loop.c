/* SPDX-License-Identifier: Apache-2.0 */
/* When a comparison ends, over clocks that the test plays: of them the device may have no time with a bound. */
#include <errno.h>
#include <string.h>

#include "../check.h"
#include "base/time_units.h"
#include "clock/compare/compare.h"

#define READ_NS INT64_C(1000)
#define LOOK_NS INT64_C(200)
#define BEGIN_NS (INT64_C(1800000000) * NS_PER_S)

enum { PATIENCE = 300000 }; /* looks for a stop: then it would go on for ever */

static int64_t now_tai_ns; /* of every clock */
static int64_t time_from_tai_ns, time_until_tai_ns; /* the device has none before and afterwards */
static int looks;

int64_t port_clock_now_ns(enum port_clock clock)
{
	(void)clock;
	return now_tai_ns += LOOK_NS;
}

int port_clock_sleep_until_ns(enum port_clock clock, int64_t deadline_tai_ns)
{
	(void)clock;
	now_tai_ns = deadline_tai_ns > now_tai_ns ? deadline_tai_ns : now_tai_ns;
	return 0;
}

bool port_stop_requested(void)
{
	return ++looks > PATIENCE;
}

int port_phc_cross(const struct port_phc *phc, enum port_phc_read read, struct port_phc_cross *cross)
{
	(void)phc;
	(void)read;
	(void)cross;
	return -ENOTSUP;
}

static int read_reference(struct source *source, int64_t *tai_ns)
{
	(void)source;
	*tai_ns = now_tai_ns += READ_NS;
	return 0;
}

static int read_device(struct source *source, int64_t *tai_ns)
{
	read_reference(source, tai_ns);
	return now_tai_ns < time_from_tai_ns || now_tai_ns >= time_until_tai_ns ? -ENODATA : 0;
}

static struct source_error reading_error(const struct source *source)
{
	(void)source;
	return (struct source_error){ READ_NS, READ_NS, READ_NS };
}

static const struct source_kind reference_kind = { .name = "reference", .read = read_reference };
static const struct source_kind device_kind = { .name = "device", .read = read_device, .reading_error = reading_error };

/*
 * Compare until it ends. The device has a time from so long after the beginning until so long after it.
 * Returns what was found, until the next call.
 */
static const struct compare *compared(const struct compare_options *options, int64_t begins_after_ns, int64_t ends_after_ns)
{
	static struct compare compare;

	memset(&compare, 0, sizeof(compare));
	compare.options = *options;
	compare.device.kind = &device_kind;
	compare.reference.kind = &reference_kind;
	compare.pauses.state = 1;
	compare.offset = histogram_create(-NS_PER_S, NS_PER_S);
	compare.window = histogram_create(0, NS_PER_S);
	compare.bounds.interval.size = histogram_create(0, NS_PER_S);
	compare.bounds.u.size = histogram_create(0, NS_PER_S);
	series_init(&compare.series, NS_PER_MS);
	jumps_init(&compare.jumps, NS_PER_MS, NS_PER_S);
	now_tai_ns = BEGIN_NS;
	time_from_tai_ns = BEGIN_NS + begins_after_ns;
	time_until_tai_ns = BEGIN_NS + ends_after_ns;
	looks = 0;
	compare_run(&compare);
	CHECK_INT(histogram_count(compare.offset), tally_get(&compare.iterations));
	histogram_destroy(compare.offset);
	histogram_destroy(compare.window);
	histogram_destroy(compare.bounds.interval.size);
	histogram_destroy(compare.bounds.u.size);
	return &compare;
}

static void test_duration(int64_t pause_max_ns)
{
	struct compare_options options = { .read = COMPARE_BRACKETED, .duration_ns = 10 * NS_PER_MS, .pause_max_ns = pause_max_ns };

	for (int64_t begins_after_ns = 0; begins_after_ns <= 5 * NS_PER_MS; begins_after_ns += 5 * NS_PER_MS) {
		/* However many samples there are by then. */
		for (int64_t readings = 0; readings < 200; readings += 7) {
			const struct compare *found = compared(&options, begins_after_ns, begins_after_ns + readings * READ_NS);

			CHECK(found->complete);
			CHECK(found->bounds.without > 0);
			CHECK_THAT(found->elapsed_ns >= 10 * NS_PER_MS && found->elapsed_ns < 11 * NS_PER_MS,
				   "time for %" PRId64 " readings: ended after %" PRId64 " ns", readings, found->elapsed_ns);
		}
	}
	CHECK(tally_get(&compared(&options, 5 * NS_PER_MS, NS_PER_S)->iterations) > 0);
	CHECK_INT(compared(&options, 0, NS_PER_S)->bounds.without, 0);
}

static void test_iterations(int64_t pause_max_ns)
{
	struct compare_options options = { .read = COMPARE_BRACKETED, .iterations = 1000, .pause_max_ns = pause_max_ns };
	const struct compare *found = compared(&options, 0, 0);

	CHECK(found->complete);
	CHECK_INT(tally_get(&found->iterations), 0);
	CHECK_INT(found->bounds.without, 1000);
	found = compared(&options, 300 * READ_NS, NS_PER_S);
	CHECK(found->complete);
	CHECK_INT(tally_get(&found->iterations) + found->bounds.without, 1000);
	CHECK(tally_get(&found->iterations) > 0);
}

int main(void)
{
	test_duration(0);
	test_duration(100 * READ_NS);
	test_iterations(0);
	test_iterations(100 * READ_NS);
	return check_result();
}
