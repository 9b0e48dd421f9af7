/* SPDX-License-Identifier: Apache-2.0 */
/* The measuring loop of a comparison: no allocation, no output; memory is constant however long it runs. */
#include "clock/compare/compare.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "port/port_clock.h"
#include "time/heard_sleep.h"

#define SPIN_MAX_NS INT64_C(50000) /* a sleep takes longer than that to wake up from */

enum { LOOK_EVERY = 64 }; /* attempts between looks at the clock that ends the run, where there is no pause */

/* What the device told with the reading that it has just had. */
static void note_error(const struct compare *compare, struct sample *sample)
{
	if (compare->device.kind->reading_error)
		sample->error = compare->device.kind->reading_error(&compare->device);
}

static int fail(struct compare *compare, int err, bool of_device)
{
	compare->read_error = err;
	compare->device_failed = of_device;
	return err;
}

/* The paper's program: the device, then the reference. */
static int take_sequential(struct compare *compare, struct sample *sample)
{
	int64_t device_tai_ns;
	int err = source_read(&compare->device, &device_tai_ns);

	if (err)
		return fail(compare, err, true);
	note_error(compare, sample);
	err = source_read(&compare->reference, &sample->time_tai_ns);
	if (err)
		return fail(compare, err, false);
	sample->offset_ns = device_tai_ns - sample->time_tai_ns;
	sample->window_ns = 0;
	return 0;
}

/* Virtual now: the device was read half-way between two readings of the reference. */
static int take_bracketed(struct compare *compare, struct sample *sample)
{
	int64_t before_tai_ns, device_tai_ns, after_tai_ns;
	int err = source_read(&compare->reference, &before_tai_ns);

	if (err)
		return fail(compare, err, false);
	err = source_read(&compare->device, &device_tai_ns);
	if (err)
		return fail(compare, err, true);
	note_error(compare, sample);
	err = source_read(&compare->reference, &after_tai_ns);
	if (err)
		return fail(compare, err, false);
	sample->window_ns = after_tai_ns - before_tai_ns;
	sample->time_tai_ns = before_tai_ns + sample->window_ns / 2;
	sample->offset_ns = device_tai_ns - sample->time_tai_ns;
	return 0;
}

/* The kernel's cross stamps: always the system's clock around the PHC, whichever of them is the device. */
static int take_cross(struct compare *compare, struct sample *sample)
{
	struct port_phc *phc = compare->device_is_phc ? compare->device.phc : compare->reference.phc;
	struct port_phc_cross cross;
	int64_t system_tai_ns;
	int err = port_phc_cross(phc, compare->phc_read, &cross);

	if (err)
		return fail(compare, err, compare->device_is_phc);
	sample->window_ns = cross.after_realtime_ns - cross.before_realtime_ns;
	system_tai_ns = cross.before_realtime_ns + sample->window_ns / 2 + compare->realtime_add_ns;
	sample->time_tai_ns = compare->device_is_phc ? system_tai_ns : cross.phc_ns;
	sample->offset_ns = compare->device_is_phc ? cross.phc_ns - system_tai_ns : system_tai_ns - cross.phc_ns;
	return 0;
}

static void flush(struct compare *compare)
{
	histogram_record_all(compare->offset, compare->offsets, compare->batched);
	if (compare->options.read != COMPARE_SEQUENTIAL || compare->phc == COMPARE_PHC_CROSS)
		histogram_record_all(compare->window, compare->windows, compare->batched);
	compare->batched = 0;
}

/*
 * After a pause caches, and under emulation translated code, are cold, and the first of two readings would take longer than
 * the second: read once for nothing. Not of the sequential reading, which is the paper's program as it stands.
 */
static void warm_up(struct compare *compare)
{
	struct sample sample;

	if (compare->phc == COMPARE_PHC_CROSS)
		return; /* the kernel's part is short */
	if (take_bracketed(compare, &sample))
		compare->read_error = 0; /* the reading that counts will fail too */
}

/* An offset to each side may be as large as was told of that side. */
static void check_told(struct compare_told *told, const struct sample *sample, int64_t low_ns, int64_t high_ns)
{
	int64_t beyond_ns = sample->offset_ns > 0 ? sample->offset_ns - low_ns : -sample->offset_ns - high_ns;
	int64_t size_ns = low_ns > high_ns ? low_ns : high_ns;

	told->missed += beyond_ns > 0;
	told->missed_beyond_window += beyond_ns > sample->window_ns / 2;
	histogram_record_all(told->size, &size_ns, 1);
}

static void check_bounds(struct compare_bounds *bounds, const struct sample *sample)
{
	bounds->checked++;
	check_told(&bounds->interval, sample, sample->error.low_ns, sample->error.high_ns);
	check_told(&bounds->u, sample, sample->error.u_ns, sample->error.u_ns);
}

/* An attempt found the device without a time: no sample, and no end of the measurement. */
static bool is_without_time(struct compare *compare)
{
	if (compare->read_error != -ENODATA || !compare->device_failed || !compare->device.kind->reading_error)
		return false;
	compare->read_error = 0;
	compare->bounds.without++;
	return true;
}

static void record(struct compare *compare, const struct sample *sample)
{
	if (compare->device.kind->reading_error)
		check_bounds(&compare->bounds, sample);
	compare->offsets[compare->batched] = sample->offset_ns;
	compare->windows[compare->batched] = sample->window_ns;
	if (++compare->batched == COMPARE_BATCH)
		flush(compare);
	series_add(&compare->series, sample->time_tai_ns, sample->offset_ns);
	jumps_take(&compare->jumps, sample->time_tai_ns, sample->offset_ns, sample->window_ns / 2);
}

static void make_pause(struct compare *compare)
{
	int64_t length_ns = pause_next_ns(&compare->pauses, compare->options.pause_max_ns);
	int64_t end_monotonic_ns;

	if (length_ns > SPIN_MAX_NS) {
		heard_sleep_until_monotonic_ns(port_clock_now_ns(PORT_CLOCK_MONOTONIC) + length_ns);
		return;
	}
	end_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC) + length_ns;
	while (port_clock_now_ns(PORT_CLOCK_MONOTONIC) < end_monotonic_ns)
		port_counter_pause();
}

/* True when time or patience are over. */
static bool is_over(struct compare *compare, int64_t begin_monotonic_ns, uint64_t attempts)
{
	int64_t now_monotonic_ns;

	if (port_stop_requested())
		return true;
	if (compare->options.pause_max_ns == 0 && attempts % LOOK_EVERY)
		return false;
	now_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);
	if (compare->options.duration_ns && now_monotonic_ns - begin_monotonic_ns >= compare->options.duration_ns) {
		compare->complete = true;
		return true;
	}
	return false;
}

/* An attempt that found both times. */
static void count(struct compare *compare, const struct sample *sample)
{
	const struct compare_options *options = &compare->options;

	if (tally_get(&compare->iterations) == 0) {
		compare->start_tai_ns = sample->time_tai_ns;
		compare->start_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);
	}
	tally_add(&compare->iterations, 1);
	/* a window that ends before it begins: the clock around the reading was put back */
	if (options->read == COMPARE_FILTERED && (sample->window_ns > options->filter_ns || sample->window_ns < 0))
		compare->discarded++;
	else
		record(compare, sample);
}

void compare_run(struct compare *compare)
{
	const struct compare_options *options = &compare->options;
	int (*take)(struct compare *, struct sample *) = compare->phc == COMPARE_PHC_CROSS     ? take_cross :
							 options->read == COMPARE_SEQUENTIAL ? take_sequential :
											       take_bracketed;
	int64_t begin_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);
	uint64_t attempts = 0;
	struct sample sample;

	while (!is_over(compare, begin_monotonic_ns, attempts)) {
		if (take(compare, &sample) == 0)
			count(compare, &sample);
		else if (!is_without_time(compare))
			break;
		attempts++;
		if (options->iterations && attempts >= (uint64_t)options->iterations) {
			compare->complete = true;
			break;
		}
		if (options->pause_max_ns) {
			make_pause(compare);
			if (options->read != COMPARE_SEQUENTIAL)
				warm_up(compare);
		}
	}
	flush(compare);
	compare->elapsed_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC) - begin_monotonic_ns;
	tally_add(&compare->finished, 1);
}

void compare_invalid(struct compare *compare, const char *reason)
{
	if (compare->reason_count < COMPARE_REASONS_MAX)
		snprintf(compare->reasons[compare->reason_count++], SOURCE_ERROR_BYTES, "%s", reason);
}
