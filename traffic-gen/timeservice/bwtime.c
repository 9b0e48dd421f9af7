/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A handle keeps a checked copy of the page's line. As long as the page's sequence number is the one that it was copied at,
 * a reading is: the counter, that number, one product. All else is the slow way: a new line, no line, no page.
 *
 * The number is looked at after the counter was read: a line that was replaced meanwhile is not used beyond its end. Where
 * it is replaced all the time, the last one copied is used: its bound holds for as long as it is usable.
 */
#include "timeservice/bwtime.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/time_units.h"
#include "timeservice/counter_now.h"
#include "timeservice/reader.h"

#define SLOW __attribute__((noinline, cold)) /* so that the fast way needs no frame */

#define NTP_ERA_S UINT64_C(2208988800) /* 1900 to 1970 */
#define PAST_LONGEST_NS NS_PER_S
#define DIFFERENCE_LONGEST_NS (3600 * NS_PER_S)

enum {
	ABI_VERSION = 1,
	PAST_READINGS = 3,
	PAST_SLEW_SHARE = 1000, /* the system's clock is slewed by at most 1000 ppm against UTC */
	DIFFERENCE_SHIFT = 4,   /* a counter of at most 16 GHz */
};

/* ---- readings ---------------------------------------------------------------------------------------------------- */

/* Never less than before. Return the time that is told; *utc_ns stays what the line says. */
static inline int64_t never_back(struct bwtime *handle, int64_t utc_ns)
{
	if (utc_ns < handle->last_utc_ns)
		return handle->last_utc_ns;
	handle->last_utc_ns = utc_ns;
	return utc_ns;
}

/* The counter, as its distance into the segment. False: the fast way is closed, or not open so far. */
static inline bool read_fast(const struct bwtime *handle, uint64_t length, uint64_t *distance)
{
	*distance = counter_now(handle->ordered) - handle->segment_ticks;
	return atomic_load_explicit(handle->sequence_at, memory_order_acquire) == handle->sequence && *distance < length;
}

/* Look whether there is a time, and copy a new line. */
static int refresh(struct bwtime *handle)
{
	int64_t line_utc_ns;
	uint64_t distance, ticks;

	return read_fast(handle, handle->segment_length, &distance) ? 0 : reader_read_slow(handle, &line_utc_ns, &ticks);
}

/* Put into told how well the time is known there. */
static void know_at(struct bwtime *handle, uint64_t ticks)
{
	timepage_interval_ns(&handle->line, ticks, &handle->low_ns, &handle->high_ns);
	handle->told.bound_ns = handle->low_ns > handle->high_ns ? handle->low_ns : handle->high_ns;
	handle->told.u_ns = timepage_u_ns(&handle->line, ticks);
}

static SLOW int now_slow(struct bwtime *handle, int64_t *utc_ns)
{
	uint64_t ticks;
	int result = reader_read_slow(handle, utc_ns, &ticks);

	if (result == 0)
		*utc_ns = never_back(handle, *utc_ns);
	return result;
}

/* A stamp the slow way: how well it is known is calculated, for the readings to come too. */
static SLOW int stamp_slow(struct bwtime *handle, struct bwtime_stamp *stamp)
{
	int64_t line_utc_ns, told_utc_ns;
	uint64_t ticks, distance, end;
	int result = reader_read_slow(handle, &line_utc_ns, &ticks);

	if (result)
		return result;
	told_utc_ns = never_back(handle, line_utc_ns);
	distance = ticks - handle->segment_ticks;
	if (distance < handle->segment_length) {
		end = distance + handle->told_step;
		handle->told_length = end < handle->segment_length ? end : handle->segment_length;
		know_at(handle, handle->segment_ticks + handle->told_length);
	} else { /* just before the line begins */
		know_at(handle, ticks);
	}
	*stamp = handle->told;
	stamp->utc_ns = told_utc_ns;
	stamp->earliest_utc_ns = line_utc_ns - handle->low_ns;
	stamp->latest_utc_ns = line_utc_ns + handle->high_ns;
	stamp->bound_ns += told_utc_ns - line_utc_ns;
	stamp->u_ns += told_utc_ns - line_utc_ns;
	stamp->stepped = handle->stepped;
	handle->stepped = false;
	return 0;
}

static inline int utc_now(struct bwtime *handle, int64_t *utc_ns)
{
	uint64_t distance;
	int64_t line_utc_ns;

	if (!read_fast(handle, handle->segment_length, &distance))
		return now_slow(handle, utc_ns);
	line_utc_ns = utc_at(handle, distance);
	*utc_ns = never_back(handle, line_utc_ns);
	return 0;
}

static inline int stamp_now(struct bwtime *handle, struct bwtime_stamp *stamp)
{
	uint64_t distance;
	int64_t utc_ns;

	if (!read_fast(handle, handle->told_length, &distance))
		return stamp_slow(handle, stamp);
	utc_ns = utc_at(handle, distance);
	if (utc_ns < handle->last_utc_ns)
		return stamp_slow(handle, stamp);
	handle->last_utc_ns = utc_ns;
	*stamp = handle->told;
	stamp->utc_ns = utc_ns;
	stamp->earliest_utc_ns = utc_ns - handle->low_ns;
	stamp->latest_utc_ns = utc_ns + handle->high_ns;
	return 0;
}

/* ---- the interface ----------------------------------------------------------------------------------------------- */

int bwtime_open(const char *path, unsigned int flags, struct bwtime **handle_out)
{
	struct bwtime *handle;

	if (!handle_out || (flags & ~(unsigned int)(BWTIME_TELL_STEPS | BWTIME_ORDERED)) || (path && !*path))
		return BWTIME_BAD_ARGUMENT;
	handle = calloc(1, sizeof(*handle));
	if (!handle)
		return BWTIME_NO_MEMORY;
	if (path) {
		handle->path = malloc(strlen(path) + 1);
		if (!handle->path) {
			free(handle);
			return BWTIME_NO_MEMORY;
		}
		strcpy(handle->path, path);
	}
	reader_init(handle, flags);
	handle->second_utc_ns = -NS_PER_S; /* none */
	*handle_out = handle;
	return 0;
}

void bwtime_close(struct bwtime *handle)
{
	if (!handle)
		return;
	port_timepage_close(&handle->file);
	free(handle->path);
	free(handle);
}

int bwtime_now_ns(struct bwtime *handle, int64_t *utc_ns)
{
	return utc_now(handle, utc_ns);
}

int bwtime_now(struct bwtime *handle, struct bwtime_stamp *stamp)
{
	return stamp_now(handle, stamp);
}

int bwtime_now_tai_ns(struct bwtime *handle, int64_t *tai_ns, int64_t *bound_ns)
{
	struct bwtime_stamp stamp;
	int result = stamp_now(handle, &stamp);

	if (result)
		return result;
	if (stamp.tai_utc_s == 0)
		return BWTIME_NO_TAI;
	*tai_ns = stamp.utc_ns + stamp.tai_utc_s * NS_PER_S;
	if (bound_ns)
		*bound_ns = stamp.bound_ns;
	return 0;
}

/* NTP's format; the second is kept for the readings to come. */
static inline uint64_t ntp_of(struct bwtime *handle, int64_t utc_ns)
{
	uint64_t ns = (uint64_t)(utc_ns - handle->second_utc_ns);

	if (ns >= (uint64_t)NS_PER_S) {
		handle->second_utc_ns = utc_ns / NS_PER_S * NS_PER_S;
		handle->second_ntp = ((uint64_t)(utc_ns / NS_PER_S) + NTP_ERA_S) << 32;
		ns = (uint64_t)(utc_ns - handle->second_utc_ns);
	}
	return handle->second_ntp + (ns << 32) / (uint64_t)NS_PER_S;
}

int bwtime_now_ntp(struct bwtime *handle, uint64_t *ntp, int64_t *bound_ns)
{
	struct bwtime_stamp stamp;
	int result = bound_ns ? stamp_now(handle, &stamp) : utc_now(handle, &stamp.utc_ns);

	if (result)
		return result;
	*ntp = ntp_of(handle, stamp.utc_ns);
	if (bound_ns)
		*bound_ns = stamp.bound_ns;
	return 0;
}

int bwtime_gettime(struct bwtime *handle, struct bwtime_timespec *utc)
{
	int64_t utc_ns;
	int result = utc_now(handle, &utc_ns);

	if (result)
		return result;
	utc->tv_sec = utc_ns / NS_PER_S;
	utc->tv_nsec = (int32_t)(utc_ns % NS_PER_S);
	utc->reserved = 0;
	return 0;
}

int bwtime_stamps(struct bwtime *handle, struct bwtime_stamp *stamps, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		int result = stamp_now(handle, &stamps[i]);

		if (result)
			return result;
	}
	return 0;
}

uint64_t bwtime_ticks(void)
{
	return counter_now_kind() == PORT_COUNTER_NONE ? 0 : counter_now(true);
}

/* Whether the counter has gone on undisturbed since then, as far as the service knows. */
static bool is_undisturbed(const struct timepage_line *line, uint64_t ticks)
{
	return !line->disrupted_ticks || (int64_t)(ticks - line->disrupted_ticks) >= 0;
}

/* Whether the line can tell a time there: not after its end, and before its beginning not further than it could reach. */
static bool is_within(const struct timepage_line *line, uint64_t ticks)
{
	uint64_t distance = ticks - line->base_ticks;

	if (!is_undisturbed(line, ticks))
		return false;
	if ((int64_t)distance >= 0)
		return distance < timepage_usable_ticks(line);
	distance = 0 - distance;
	return distance <= (uint64_t)INT64_MAX / 2 &&
	       fixed_mul(distance >> 10, line->settled_mult) < (uint64_t)TIMEPAGE_AGE_MAX_NS >> 10 &&
	       timepage_utc_ns(line, ticks) > 0;
}

/* A time of the line, wherever it is. */
static void stamp_at(const struct bwtime *handle, uint64_t ticks, struct bwtime_stamp *stamp)
{
	int64_t low_ns, high_ns;

	timepage_interval_ns(&handle->line, ticks, &low_ns, &high_ns);
	*stamp = handle->told;
	stamp->utc_ns = timepage_utc_ns(&handle->line, ticks);
	stamp->earliest_utc_ns = stamp->utc_ns - low_ns;
	stamp->latest_utc_ns = stamp->utc_ns + high_ns;
	stamp->bound_ns = low_ns > high_ns ? low_ns : high_ns;
	stamp->u_ns = timepage_u_ns(&handle->line, ticks);
	stamp->stepped = handle->stepped;
}

int bwtime_from_ticks(struct bwtime *handle, const uint64_t *ticks, size_t count, struct bwtime_stamp *stamps)
{
	int result = refresh(handle);

	if (result)
		return result;
	for (size_t i = 0; i < count; i++) {
		if (!is_within(&handle->line, ticks[i]))
			return BWTIME_BAD_ARGUMENT;
		stamp_at(handle, ticks[i], &stamps[i]);
	}
	return 0;
}

/* The system's clock and the counter at one moment: the quickest of some readings. */
static struct past_look look_at_system(const struct bwtime *handle)
{
	struct past_look look = { 0 };
	uint64_t shortest = UINT64_MAX;

	for (int i = 0; i < PAST_READINGS; i++) {
		uint64_t before_ticks = counter_now(true), after_ticks;
		int64_t realtime_ns = port_timepage_realtime_ns();

		after_ticks = counter_now(true);
		if (after_ticks - before_ticks >= shortest)
			continue;
		shortest = after_ticks - before_ticks;
		look.ticks = before_ticks + shortest / 2;
		look.realtime_ns = realtime_ns;
	}
	look.error_ns = (int64_t)fixed_mul(shortest, handle->line.settled_mult) / 2 + 1;
	return look;
}

/* What the system's clock may have been slewed by over a while. */
static int64_t slewed_ns(int64_t duration_ns)
{
	return duration_ns / PAST_SLEW_SHARE + 1;
}

/* Between two looks the system's clock has gone as far as the counter, but for what it may be slewed by. */
static bool was_stepped(const struct bwtime *handle, const struct past_look *from, const struct past_look *to)
{
	int64_t counted_ns = (int64_t)fixed_mul(to->ticks - from->ticks, handle->line.settled_mult);
	int64_t off_ns = to->realtime_ns - from->realtime_ns - counted_ns;

	return llabs(off_ns) > slewed_ns(counted_ns) + from->error_ns + to->error_ns;
}

int bwtime_past(struct bwtime *handle, int64_t realtime_ns, struct bwtime_stamp *stamp)
{
	struct past_look now, before;
	int64_t age_ns, error_ns;
	int result = refresh(handle);

	if (result)
		return result;
	before = handle->past;
	now = handle->past = look_at_system(handle);
	age_ns = now.realtime_ns - realtime_ns;
	if (age_ns < 0 || age_ns > PAST_LONGEST_NS || !is_within(&handle->line, now.ticks) ||
	    (before.ticks && was_stepped(handle, &before, &now)))
		return BWTIME_BAD_ARGUMENT;
	stamp_at(handle, now.ticks, stamp);
	error_ns = now.error_ns + slewed_ns(age_ns);
	stamp->utc_ns -= age_ns;
	stamp->earliest_utc_ns -= age_ns + error_ns;
	stamp->latest_utc_ns -= age_ns - error_ns;
	stamp->bound_ns += error_ns;
	stamp->u_ns += error_ns;
	return 0;
}

int bwtime_difference(struct bwtime *handle, uint64_t from_ticks, uint64_t to_ticks, int64_t *duration_ns, int64_t *bound_ns)
{
	uint64_t apart = to_ticks - from_ticks;
	bool forward = (int64_t)apart >= 0;
	int64_t size_ns;
	int result = refresh(handle);

	if (result)
		return result;
	if (!forward)
		apart = 0 - apart;
	if (apart >> DIFFERENCE_SHIFT > (uint64_t)DIFFERENCE_LONGEST_NS ||
	    fixed_mul(apart, handle->line.settled_mult) > (uint64_t)DIFFERENCE_LONGEST_NS ||
	    !is_undisturbed(&handle->line, forward ? from_ticks : to_ticks))
		return BWTIME_BAD_ARGUMENT;
	size_ns = (int64_t)fixed_mul(apart, handle->line.settled_mult);
	*duration_ns = forward ? size_ns : -size_ns;
	if (bound_ns)
		*bound_ns = (int64_t)((double)size_ns * 1e-9 * (double)handle->line.growth_ppb) + 2;
	return 0;
}

int bwtime_condition(struct bwtime *handle, struct bwtime_condition *condition)
{
	int result = refresh(handle);

	if (result)
		return result;
	*condition = (struct bwtime_condition){
		.heard_utc_ns = timepage_utc_ns(&handle->line, handle->line.heard_ticks),
		.valid_until_utc_ns = timepage_utc_ns(&handle->line, handle->line.usable_until_ticks),
		.growth_ppb = (int64_t)handle->line.growth_ppb,
		.disruptions = handle->line.disruptions,
		.publications = handle->line.publications,
		.state = handle->line.state,
	};
	return 0;
}

int bwtime_accept_step(struct bwtime *handle)
{
	handle->blocked = false;
	handle->last_utc_ns = INT64_MIN;
	return 0;
}

int64_t bwtime_last_step_ns(const struct bwtime *handle)
{
	return handle->step_ns;
}

uint64_t bwtime_publications(const struct bwtime *handle)
{
	return handle->line.publications;
}

const char *bwtime_why(const struct bwtime *handle)
{
	return handle->why;
}

const char *bwtime_result_name(int result)
{
	switch (result) {
	case BWTIME_OK:
		return "ok";
	case BWTIME_NO_SERVICE:
		return "no service";
	case BWTIME_NO_MEMORY:
		return "out of memory";
	case BWTIME_DENIED:
		return "not permitted";
	case BWTIME_BAD_ARGUMENT:
		return "bad argument";
	case BWTIME_NO_TAI:
		return "TAI - UTC is unknown";
	case BWTIME_NO_SYNC:
		return "not synchronised";
	case BWTIME_BAD_VERSION:
		return "wrong version";
	case BWTIME_BAD_PAGE:
		return "bad page";
	case BWTIME_BAD_COUNTER:
		return "counter refused";
	case BWTIME_STEPPED:
		return "stepped";
	default:
		return "unknown";
	}
}

unsigned int bwtime_abi_version(void)
{
	return ABI_VERSION;
}
