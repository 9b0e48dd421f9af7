/* SPDX-License-Identifier: Apache-2.0 */
#include "timeservice/reader.h"

#include <errno.h>
#include <stdlib.h>

#include "timeservice/counter_now.h"

#define BEHIND_MAX_NS INT64_C(10000000)          /* counters of processors differ by less */
#define BEHIND_MAX_TICKS (UINT64_C(1) << 40)     /* more than that, at any rate */
#define BACKWARDS_MAX_NS INT64_C(100000000)      /* a new line that is further behind is a step, whatever its epoch */
/* Interval and U are calculated for 2^19 ns (half a millisecond) at a time, as they are at their end: 2^19 * 2^48 / mult ticks. */
#define TOLD_STEP_SCALED (UINT64_C(1) << 62)
#define SHIFTED_MAX_BITS 63                      /* of a distance that is shifted */
#define RETRY_TICKS_DEFAULT (UINT64_C(1) << 29)  /* 0.1 to 0.5 s of a TSC */

enum { RETRIES_PER_S = 4, REFRESHES_MAX = 4, TOLD_STEP_SCALE = 5 };

void reader_init(struct bwtime *handle, unsigned int flags)
{
	uint64_t hz = counter_now_kind() == PORT_COUNTER_NONE ? 0 : counter_now_hz();

	handle->tell_steps = flags & BWTIME_TELL_STEPS;
	handle->ordered = flags & BWTIME_ORDERED;
	handle->sequence_at = &handle->none;
	handle->last_utc_ns = INT64_MIN;
	handle->retry_ticks = hz ? hz / RETRIES_PER_S : RETRY_TICKS_DEFAULT;
	handle->result = BWTIME_NO_SERVICE;
	handle->why = "not looked yet";
}

/* ---- attaching --------------------------------------------------------------------------------------------------- */

static int refuse(struct bwtime *handle, int result, const char *why)
{
	handle->usable = 0;
	handle->segment_length = 0;
	handle->told_length = 0;
	handle->result = result;
	handle->why = why;
	return result;
}

static int open_failure(struct bwtime *handle, int err)
{
	switch (err) {
	case -ENOENT:
		return refuse(handle, BWTIME_NO_SERVICE, "no service: bw-timed does not run, there is no page");
	case -EMSGSIZE:
		return refuse(handle, BWTIME_BAD_PAGE, "the file is too short to be a page");
	case -EPERM:
		return refuse(handle, BWTIME_DENIED, "the page is no regular file, or others than its owner may write to it");
	case -EACCES:
		return refuse(handle, BWTIME_DENIED, "no permission to read the page");
	default:
		return refuse(handle, BWTIME_BAD_PAGE, "the page cannot be mapped");
	}
}

static int image_failure(struct bwtime *handle, int err, const char *why)
{
	return refuse(handle, err == -ENOENT  ? BWTIME_NO_SERVICE :
			      err == -ENOTSUP ? BWTIME_BAD_COUNTER :
			      err == -EPROTO  ? BWTIME_BAD_VERSION :
						BWTIME_BAD_PAGE, why);
}

/* Map the page as it is named now; a mapping that stands is given up for a good one alone. */
static int attach(struct bwtime *handle)
{
	struct timepage_identity here = { .counter_kind = counter_now_kind() };
	const struct timepage_image *image;
	struct port_timepage file;
	const char *why;
	int err;

	if (here.counter_kind == PORT_COUNTER_NONE)
		return refuse(handle, BWTIME_BAD_COUNTER, "this processor has no counter that a program can read");
	if (port_boot_id(here.boot))
		return refuse(handle, BWTIME_BAD_PAGE, "the system does not tell which boot this is");
	err = port_timepage_open(handle->path, TIMEPAGE_BYTES, &file);
	if (err)
		return open_failure(handle, err);
	image = file.readable;
	err = timepage_image_check(image, &here, &why);
	if (err) {
		port_timepage_close(&file);
		return image_failure(handle, err, why);
	}
	port_timepage_close(&handle->file);
	handle->file = file;
	handle->sequence_at = &image->line.sequence;
	handle->attached = true;
	return 0;
}

/* Try to attach, unless that was tried a moment ago. True: there is a page to look at anew. */
static bool try_attach(struct bwtime *handle, uint64_t ticks)
{
	int result = handle->result;
	const char *why = handle->why;
	bool had_page = handle->attached;

	if (handle->tried && ticks - handle->tried_ticks < handle->retry_ticks)
		return false;
	handle->tried = true;
	handle->tried_ticks = ticks;
	if (attach(handle) == 0)
		return true;
	if (had_page) /* what that page says is the better answer */
		refuse(handle, result, why);
	return false;
}

/* ---- the line ---------------------------------------------------------------------------------------------------- */

static bool gives_time(const struct timepage_line *line)
{
	return line->state == TIMEPAGE_SYNCHRONISED || line->state == TIMEPAGE_HOLDOVER ||
	       (line->state == TIMEPAGE_ENDED && line->mult != 0);
}

static void adopt(struct bwtime *handle, const struct timepage_line *line)
{
	handle->line = *line;
	handle->usable = timepage_usable_ticks(line);
	handle->segment_length = 0;
	handle->told_length = 0;
	handle->told_step = TOLD_STEP_SCALED / (line->mult >> TOLD_STEP_SCALE);
	handle->told.epoch = line->epoch;
	handle->told.tai_utc_s = line->tai_utc_s;
	handle->told.state = line->state;
	handle->told.leap = line->leap;
}

/* Open the fast way for the segment of the line in which a counter lies that is not before its beginning and not after its end. */
static void open_segment(struct bwtime *handle, uint64_t ticks)
{
	const struct timepage_line *line = &handle->line;
	uint64_t settled = line->settled_ticks - line->base_ticks, longest, mult;
	bool is_settled = ticks - line->base_ticks >= settled;

	handle->segment_ticks = is_settled ? line->settled_ticks : line->base_ticks;
	handle->segment_utc_ns = is_settled ? line->settled_utc_ns : line->base_utc_ns;
	mult = is_settled ? line->settled_mult : line->mult;
	/* As far to the left as it goes: (d << shift) * (mult << (16 - shift)) / 2^64 is d * mult / 2^48. */
	for (handle->shift = 0; mult >> (FIXED_MUL_SHIFT + handle->shift); handle->shift++)
		;
	handle->segment_mult = mult << (64 - FIXED_MUL_SHIFT - handle->shift);
	handle->segment_length = is_settled ? handle->usable - settled : handle->usable < settled ? handle->usable : settled;
	longest = UINT64_C(1) << (SHIFTED_MAX_BITS - handle->shift);
	if (handle->segment_length > longest)
		handle->segment_length = longest;
	handle->told_length = 0;
}

/* A line of another epoch, or one that would put this handle's time back by far. */
static bool is_step(const struct bwtime *handle, const struct timepage_line *line, uint64_t ticks)
{
	if (handle->last_utc_ns == INT64_MIN)
		return false;
	if (handle->knows_epoch && line->epoch != handle->epoch)
		return true;
	return (int64_t)(ticks - line->base_ticks) >= 0 && ticks - line->base_ticks <= handle->usable &&
	       timepage_utc_ns(line, ticks) < handle->last_utc_ns - BACKWARDS_MAX_NS;
}

static void take_step(struct bwtime *handle, const struct timepage_line *line, uint64_t ticks)
{
	bool by_epoch = line->epoch != handle->epoch;

	handle->step_ns = by_epoch ? line->step_ns : timepage_utc_ns(line, ticks) - handle->last_utc_ns;
	handle->stepped = true;
	handle->last_utc_ns = INT64_MIN;
	handle->blocked = !handle->tell_steps;
}

/* Copy the line that stands. */
static int refresh(struct bwtime *handle, uint64_t ticks)
{
	const struct timepage_image *image = handle->file.readable;
	struct timepage_line line;
	int err = timepage_line_read(&image->line, &line, &handle->sequence);

	if (err == -EAGAIN && handle->usable)
		return 0; /* published faster than it can be copied: the copy that is there holds */
	if (err == -EAGAIN)
		return refuse(handle, BWTIME_NO_SYNC, "the page is changed all the time");
	if (err == -ENODATA)
		return refuse(handle, BWTIME_NO_SYNC, "nothing was published yet");
	if (err)
		return refuse(handle, BWTIME_BAD_PAGE, "the figures of the page cannot be");
	if (!gives_time(&line))
		return refuse(handle, line.state == TIMEPAGE_REFUSED ? BWTIME_BAD_COUNTER : BWTIME_NO_SYNC,
			      timepage_reason_name(line.reason));
	adopt(handle, &line);
	if (is_step(handle, &line, ticks))
		take_step(handle, &line, ticks);
	else if (handle->blocked && line.epoch != handle->epoch)
		handle->step_ns = line.step_ns;
	handle->epoch = line.epoch;
	handle->knows_epoch = true;
	if (handle->blocked)
		return refuse(handle, BWTIME_STEPPED, "the time was stepped");
	return 0;
}

/* ---- a reading --------------------------------------------------------------------------------------------------- */

/* A service that runs publishes on, be it that it has no time. */
static const char *why_too_old(const struct timepage_line *line)
{
	return line->state == TIMEPAGE_ENDED ? "the service has ended, and what it published last is too old" :
	       timepage_ends_at_leap(line)   ? timepage_reason_name(TIMEPAGE_REASON_LEAP) :
					       "bw-timed was killed or hangs: what it published last is too old";
}

/* Time by the copy that is there: of a counter within it, or behind its beginning by little. */
static int read_copy(struct bwtime *handle, uint64_t ticks, int64_t *line_utc_ns)
{
	uint64_t distance = ticks - handle->line.base_ticks;

	if (distance < handle->usable) {
		*line_utc_ns = timepage_utc_ns(&handle->line, ticks);
		open_segment(handle, ticks);
		return 0;
	}
	if ((int64_t)distance >= 0)
		return refuse(handle, BWTIME_NO_SYNC, why_too_old(&handle->line));
	if (!handle->usable)
		return refuse(handle, BWTIME_NO_SYNC, "what the service published was too old already");
	if (0 - distance > BEHIND_MAX_TICKS || fixed_mul(0 - distance, handle->line.settled_mult) > (uint64_t)BEHIND_MAX_NS)
		return refuse(handle, BWTIME_NO_SYNC, "the processor's counter is behind the service's: it has jumped");
	*line_utc_ns = timepage_utc_ns(&handle->line, ticks);
	return 0;
}

int reader_read_slow(struct bwtime *handle, int64_t *line_utc_ns, uint64_t *ticks_out)
{
	uint64_t ticks = counter_now(handle->ordered);
	bool may_attach = true;

	if (!handle->attached && !try_attach(handle, ticks))
		return handle->result;
	for (int i = 0; i < REFRESHES_MAX; i++) {
		int result = 0;

		if (handle->result || i == 0 || atomic_load_explicit(handle->sequence_at, memory_order_acquire) != handle->sequence)
			result = refresh(handle, ticks);
		else
			break;
		if (result) {
			/* Another service may have made another page. */
			if (!may_attach || result == BWTIME_STEPPED || !try_attach(handle, ticks))
				return result;
			may_attach = false;
			continue;
		}
		handle->result = 0;
		handle->why = "";
		ticks = counter_now(handle->ordered);
	}
	if (handle->result)
		return handle->result;
	*ticks_out = ticks;
	if (read_copy(handle, ticks, line_utc_ns) == 0)
		return 0;
	try_attach(handle, ticks); /* for the next reading */
	return handle->result;
}
