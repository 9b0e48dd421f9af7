/* SPDX-License-Identifier: Apache-2.0 */
#include "timeservice/page.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/time_units.h"
#include "timeservice/fixed_mul.h"

#define LEAP_NEAR_NS NS_PER_MS /* a line that ends so near to a leap second ends for that */
#define DAY_NS (INT64_C(86400) * NS_PER_S)

enum { READ_RETRIES = 64, TAI_UTC_MAX_S = 1000, STRATUM_MAX = 16, LEAP_MAX = 3, REASON_MAX = 255 };

/* Order of the words of a line. */
enum {
	WORD_BASE_TICKS,
	WORD_BASE_UTC,
	WORD_MULT,
	WORD_SETTLED_TICKS,
	WORD_SETTLED_UTC,
	WORD_SETTLED_MULT,
	WORD_LOW,
	WORD_HIGH,
	WORD_GROWTH,
	WORD_SCATTER_OFFSET,
	WORD_SCATTER_CROSS,
	WORD_SCATTER_RATE,
	WORD_SCATTER_WALK,
	WORD_HEARD,
	WORD_DISRUPTIONS,
	WORD_USABLE_UNTIL,
	WORD_EPOCH,
	WORD_PUBLICATIONS,
	WORD_STEP,
	WORD_STATE_AND_REASON,
	WORD_LEAP_AND_STRATUM,
	WORD_TAI_UTC,
	WORD_DISRUPTED,
	WORDS_USED,
};

_Static_assert((int)WORDS_USED <= (int)TIMEPAGE_LINE_WORDS, "words of a line");

/* ---- figures ----------------------------------------------------------------------------------------------------- */

int64_t timepage_utc_ns(const struct timepage_line *line, uint64_t ticks)
{
	uint64_t distance = ticks - line->base_ticks;

	if ((int64_t)distance < 0) /* the rate as it is, without the slew */
		return line->base_utc_ns - (int64_t)fixed_mul(0 - distance, line->settled_mult);
	if (distance < line->settled_ticks - line->base_ticks)
		return line->base_utc_ns + (int64_t)fixed_mul(distance, line->mult);
	return line->settled_utc_ns + (int64_t)fixed_mul(ticks - line->settled_ticks, line->settled_mult);
}

uint64_t timepage_usable_ticks(const struct timepage_line *line)
{
	int64_t usable = (int64_t)(line->usable_until_ticks - line->base_ticks);

	return usable > 0 ? (uint64_t)usable : 0;
}

/* Publishing ends a line where its latest UTC is there: the last of a day, by the announced second less where one is left out. */
bool timepage_ends_at_leap(const struct timepage_line *line)
{
	int64_t low_ns, high_ns, after_ns;

	if ((line->leap != 1 && line->leap != 2) || !line->mult || !timepage_usable_ticks(line))
		return false;
	timepage_interval_ns(line, line->usable_until_ticks, &low_ns, &high_ns);
	after_ns = timepage_utc_ns(line, line->usable_until_ticks) + high_ns + (line->leap == 2 ? NS_PER_S : 0);
	return (after_ns + LEAP_NEAR_NS) % DAY_NS < 2 * LEAP_NEAR_NS;
}

static double age_s(const struct timepage_line *line, uint64_t ticks)
{
	return fabs((double)(timepage_utc_ns(line, ticks) - line->base_utc_ns)) * 1e-9;
}

/* Ages are at most nine years, growths at most one: the sums fit. */
void timepage_interval_ns(const struct timepage_line *line, uint64_t ticks, int64_t *low_ns, int64_t *high_ns)
{
	int64_t wider_ns = (int64_t)(age_s(line, ticks) * (double)line->growth_ppb) + 2; /* rounding: up, and that of the time itself */

	*low_ns = line->low_ns + wider_ns;
	*high_ns = line->high_ns + wider_ns;
}

int64_t timepage_bound_ns(const struct timepage_line *line, uint64_t ticks)
{
	int64_t low_ns, high_ns;

	timepage_interval_ns(line, ticks, &low_ns, &high_ns);
	return low_ns > high_ns ? low_ns : high_ns;
}

int64_t timepage_u_ns(const struct timepage_line *line, uint64_t ticks)
{
	double u_ns = ceil(scatter_u_ns(&line->scatter, age_s(line, ticks)));
	int64_t bound_ns = timepage_bound_ns(line, ticks);

	return u_ns < (double)bound_ns ? (int64_t)u_ns : bound_ns;
}

static bool distances_valid(const struct timepage_line *line)
{
	int64_t settled = (int64_t)(line->settled_ticks - line->base_ticks);
	int64_t usable = (int64_t)(line->usable_until_ticks - line->base_ticks);
	int64_t furthest = usable > settled ? usable : settled;

	if (settled < 0 || furthest > INT64_MAX / 2)
		return false;
	/* In units of 1024, so that the product cannot overflow: 2^52 * 2^58 / 2^48. */
	return fixed_mul((uint64_t)furthest >> 10, line->mult) < (uint64_t)TIMEPAGE_AGE_MAX_NS >> 10 &&
	       fixed_mul((uint64_t)furthest >> 10, line->settled_mult) < (uint64_t)TIMEPAGE_AGE_MAX_NS >> 10;
}

static bool rates_valid(const struct timepage_line *line)
{
	uint64_t difference = line->mult > line->settled_mult ? line->mult - line->settled_mult : line->settled_mult - line->mult;

	return line->mult >= TIMEPAGE_MULT_MIN && line->mult <= TIMEPAGE_MULT_MAX && line->settled_mult >= TIMEPAGE_MULT_MIN &&
	       line->settled_mult <= TIMEPAGE_MULT_MAX && difference <= line->mult >> TIMEPAGE_SLEW_SHIFT;
}

static bool words_valid(const struct timepage_line *line)
{
	return line->state > TIMEPAGE_NONE && line->state <= TIMEPAGE_ENDED && line->reason <= REASON_MAX && line->leap >= 0 &&
	       line->leap <= LEAP_MAX && line->stratum >= 0 && line->stratum <= STRATUM_MAX && line->tai_utc_s >= 0 &&
	       line->tai_utc_s <= TAI_UTC_MAX_S;
}

/* A line that gives a time, or has given one. */
static bool has_time(const struct timepage_line *line)
{
	return line->state == TIMEPAGE_SYNCHRONISED || line->state == TIMEPAGE_HOLDOVER || line->state == TIMEPAGE_ENDED;
}

int timepage_line_check(const struct timepage_line *line)
{
	if (!words_valid(line))
		return -EBADMSG;
	if (!has_time(line) || (line->state == TIMEPAGE_ENDED && line->mult == 0))
		return 0; /* nobody reads its figures */
	if (line->base_utc_ns <= 0 || line->base_utc_ns > TIMEPAGE_UTC_MAX_NS - 2 * TIMEPAGE_AGE_MAX_NS || !rates_valid(line) ||
	    !distances_valid(line) || line->low_ns < 0 || line->low_ns > TIMEPAGE_BOUND_MAX_NS || line->high_ns < 0 ||
	    line->high_ns > TIMEPAGE_BOUND_MAX_NS || line->growth_ppb > TIMEPAGE_RATE_MAX || !scatter_valid(&line->scatter))
		return -EBADMSG;
	if (line->settled_utc_ns !=
	    line->base_utc_ns + (int64_t)fixed_mul(line->settled_ticks - line->base_ticks, line->mult))
		return -EBADMSG; /* the segments do not meet */
	return 0;
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

static const char *name_of(const char *const *names, size_t count, uint32_t index)
{
	return index < count && names[index] ? names[index] : "unknown";
}

const char *timepage_state_name(uint32_t state)
{
	static const char *const names[] = { "none", "starting", "synchronised", "holdover", "unsynchronised", "refused", "ended" };

	return name_of(names, sizeof(names) / sizeof(names[0]), state);
}

const char *timepage_reason_name(uint32_t reason)
{
	static const char *const names[TIMEPAGE_REASONS] = {
		[TIMEPAGE_REASON_NONE] = "none",
		[TIMEPAGE_REASON_STARTING] = "too few replies yet",
		[TIMEPAGE_REASON_NO_SERVER] = "no server answers",
		[TIMEPAGE_REASON_DENIED] = "the servers deny service",
		[TIMEPAGE_REASON_SERVER_UNSYNCHRONISED] = "no server is synchronised",
		[TIMEPAGE_REASON_NO_MAJORITY] = "the servers contradict each other",
		[TIMEPAGE_REASON_CONTRADICTION] = "a server contradicts what it said before",
		[TIMEPAGE_REASON_BOUND] = "the bound is wider than allowed",
		[TIMEPAGE_REASON_COUNTER_JUMPED] = "the processor's counter stopped or jumped",
		[TIMEPAGE_REASON_COUNTER_REFUSED] = "the processor's counter cannot serve",
		[TIMEPAGE_REASON_HELD] = "asked to hold",
		[TIMEPAGE_REASON_ENDED] = "the service has ended",
		[TIMEPAGE_REASON_SETTING] = "wrong configuration",
		[TIMEPAGE_REASON_NOT_AUTHENTICATED] = "the servers' answers are not authenticated by their keys",
		[TIMEPAGE_REASON_LEAP] = "a leap second has come, and no server was heard since",
		[TIMEPAGE_REASON_RATE] = "the servers want to be asked less often",
		[TIMEPAGE_REASON_REMADE] = "the page was taken away and made anew",
	};

	return name_of(names, TIMEPAGE_REASONS, reason);
}

const char *timepage_server_state_name(uint32_t state)
{
	static const char *const names[] = { "unknown", "selected", "combined", "falseticker", "unfit", "unreachable", "denied" };

	return name_of(names, sizeof(names) / sizeof(names[0]), state);
}

/* ---- postings ---------------------------------------------------------------------------------------------------- */

/* A double's own 64 bits (IEEE 754 on all systems that are served). */
static uint64_t word_of(double value)
{
	uint64_t word;

	memcpy(&word, &value, sizeof(word));
	return word;
}

static double double_of(uint64_t word)
{
	double value;

	memcpy(&value, &word, sizeof(value));
	return value;
}

static void pack(const struct timepage_line *line, uint64_t words[TIMEPAGE_LINE_WORDS])
{
	memset(words, 0, TIMEPAGE_LINE_WORDS * sizeof(words[0]));
	words[WORD_BASE_TICKS] = line->base_ticks;
	words[WORD_BASE_UTC] = (uint64_t)line->base_utc_ns;
	words[WORD_MULT] = line->mult;
	words[WORD_SETTLED_TICKS] = line->settled_ticks;
	words[WORD_SETTLED_UTC] = (uint64_t)line->settled_utc_ns;
	words[WORD_SETTLED_MULT] = line->settled_mult;
	words[WORD_LOW] = (uint64_t)line->low_ns;
	words[WORD_HIGH] = (uint64_t)line->high_ns;
	words[WORD_GROWTH] = line->growth_ppb;
	words[WORD_SCATTER_OFFSET] = word_of(line->scatter.offset_ns2);
	words[WORD_SCATTER_CROSS] = word_of(line->scatter.cross_ns2_per_s);
	words[WORD_SCATTER_RATE] = word_of(line->scatter.rate_ns2_per_s2);
	words[WORD_SCATTER_WALK] = word_of(line->scatter.walk_ns2_per_s3);
	words[WORD_HEARD] = line->heard_ticks;
	words[WORD_DISRUPTIONS] = line->disruptions;
	words[WORD_USABLE_UNTIL] = line->usable_until_ticks;
	words[WORD_EPOCH] = line->epoch;
	words[WORD_PUBLICATIONS] = line->publications;
	words[WORD_STEP] = (uint64_t)line->step_ns;
	words[WORD_STATE_AND_REASON] = line->state | (uint64_t)line->reason << 32;
	words[WORD_LEAP_AND_STRATUM] = (uint32_t)line->leap | (uint64_t)(uint32_t)line->stratum << 32;
	words[WORD_TAI_UTC] = (uint32_t)line->tai_utc_s;
	words[WORD_DISRUPTED] = line->disrupted_ticks;
}

static void unpack(const uint64_t words[TIMEPAGE_LINE_WORDS], struct timepage_line *line)
{
	line->base_ticks = words[WORD_BASE_TICKS];
	line->base_utc_ns = (int64_t)words[WORD_BASE_UTC];
	line->mult = words[WORD_MULT];
	line->settled_ticks = words[WORD_SETTLED_TICKS];
	line->settled_utc_ns = (int64_t)words[WORD_SETTLED_UTC];
	line->settled_mult = words[WORD_SETTLED_MULT];
	line->low_ns = (int64_t)words[WORD_LOW];
	line->high_ns = (int64_t)words[WORD_HIGH];
	line->growth_ppb = words[WORD_GROWTH];
	line->scatter.offset_ns2 = double_of(words[WORD_SCATTER_OFFSET]);
	line->scatter.cross_ns2_per_s = double_of(words[WORD_SCATTER_CROSS]);
	line->scatter.rate_ns2_per_s2 = double_of(words[WORD_SCATTER_RATE]);
	line->scatter.walk_ns2_per_s3 = double_of(words[WORD_SCATTER_WALK]);
	line->heard_ticks = words[WORD_HEARD];
	line->disruptions = words[WORD_DISRUPTIONS];
	line->usable_until_ticks = words[WORD_USABLE_UNTIL];
	line->epoch = words[WORD_EPOCH];
	line->publications = words[WORD_PUBLICATIONS];
	line->step_ns = (int64_t)words[WORD_STEP];
	line->state = (uint32_t)words[WORD_STATE_AND_REASON];
	line->reason = (uint32_t)(words[WORD_STATE_AND_REASON] >> 32);
	line->leap = (int32_t)(uint32_t)words[WORD_LEAP_AND_STRATUM];
	line->stratum = (int32_t)(uint32_t)(words[WORD_LEAP_AND_STRATUM] >> 32);
	line->tai_utc_s = (int32_t)(uint32_t)words[WORD_TAI_UTC];
	line->disrupted_ticks = words[WORD_DISRUPTED];
}

/* The writer sets the parity itself: after a writer that was killed half-way both copies are written anew. */
static void turn(_Atomic uint32_t *sequence, uint32_t parity)
{
	uint32_t before = atomic_load_explicit(sequence, memory_order_relaxed);

	atomic_thread_fence(memory_order_release); /* the copy that is turned to is whole before the turn */
	atomic_store_explicit(sequence, before + 1 + ((before + 1) % 2 != parity), memory_order_release);
	atomic_thread_fence(memory_order_seq_cst); /* the writes that follow stay behind the turn */
}

static void write_words(_Atomic uint64_t *copy, const uint64_t *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		atomic_store_explicit(&copy[i], words[i], memory_order_relaxed);
}

/* Read count words of the copy that stands. Return 0 or -EAGAIN. */
static int read_words(const _Atomic uint32_t *sequence, const _Atomic uint64_t *copies, uint64_t *words, size_t count,
		      uint32_t *sequence_out)
{
	for (int retry = 0; retry < READ_RETRIES; retry++) {
		uint32_t before = atomic_load_explicit(sequence, memory_order_acquire);
		const _Atomic uint64_t *copy = copies + (before & 1) * count;

		for (size_t i = 0; i < count; i++)
			words[i] = atomic_load_explicit(&copy[i], memory_order_relaxed);
		atomic_thread_fence(memory_order_acquire);
		if (atomic_load_explicit(sequence, memory_order_relaxed) == before) {
			*sequence_out = before;
			return 0;
		}
	}
	return -EAGAIN;
}

void timepage_line_write(struct timepage_line_posting *posting, const struct timepage_line *line)
{
	uint64_t words[TIMEPAGE_LINE_WORDS];

	pack(line, words);
	turn(&posting->sequence, 1); /* readers use copy 1 */
	write_words(posting->copies[0], words, TIMEPAGE_LINE_WORDS);
	turn(&posting->sequence, 0); /* readers use copy 0 */
	write_words(posting->copies[1], words, TIMEPAGE_LINE_WORDS);
}

int timepage_line_read(const struct timepage_line_posting *posting, struct timepage_line *line, uint32_t *sequence)
{
	uint64_t words[TIMEPAGE_LINE_WORDS];
	struct timepage_line read;
	uint32_t at;
	int err = read_words(&posting->sequence, &posting->copies[0][0], words, TIMEPAGE_LINE_WORDS, &at);

	if (err)
		return err;
	unpack(words, &read);
	if (read.publications == 0)
		return -ENODATA;
	err = timepage_line_check(&read);
	if (err)
		return err;
	*line = read;
	*sequence = at;
	return 0;
}

void timepage_status_write(struct timepage_status_posting *posting, const struct timepage_status *status)
{
	turn(&posting->sequence, 1);
	for (int copy = 0; copy < 2; copy++) {
		const unsigned char *bytes = (const unsigned char *)status;

		if (copy == 1)
			turn(&posting->sequence, 0);
		for (size_t i = 0; i < TIMEPAGE_STATUS_WORDS; i++) {
			uint64_t word;

			memcpy(&word, bytes + 8 * i, sizeof(word));
			atomic_store_explicit(&posting->copies[copy][i], word, memory_order_relaxed);
		}
	}
}

static void end_text(char *text, size_t size_bytes)
{
	text[size_bytes - 1] = '\0';
	for (char *at = text; *at; at++) {
		if (*at < 0x20 || *at > 0x7e)
			*at = '?';
	}
}

int timepage_status_read(const struct timepage_status_posting *posting, struct timepage_status *status)
{
	uint64_t *words = calloc(TIMEPAGE_STATUS_WORDS, sizeof(*words));
	uint32_t sequence;
	int err;

	if (!words)
		return -ENOMEM;
	err = read_words(&posting->sequence, &posting->copies[0][0], words, TIMEPAGE_STATUS_WORDS, &sequence);
	if (!err)
		memcpy(status, words, sizeof(*status));
	free(words);
	if (err)
		return err;
	end_text(status->version, sizeof(status->version));
	end_text(status->text, sizeof(status->text));
	if (status->server_count > TIMEPAGE_SERVERS || status->history_count > TIMEPAGE_HISTORY)
		return -EBADMSG;
	for (size_t i = 0; i < TIMEPAGE_SERVERS; i++)
		end_text(status->servers[i].address, sizeof(status->servers[i].address));
	return status->pid ? 0 : -ENODATA;
}

int timepage_image_check(const struct timepage_image *image, const struct timepage_identity *here, const char **why)
{
	uint64_t magic = atomic_load_explicit(&image->magic, memory_order_acquire);

	*why = "the page is not set up yet";
	if (magic == 0)
		return -ENOENT;
	*why = "the file is no page of the time service";
	if (magic != TIMEPAGE_MAGIC)
		return -EBADMSG;
	*why = "the page is of another version";
	if (atomic_load_explicit(&image->version, memory_order_relaxed) != TIMEPAGE_VERSION ||
	    atomic_load_explicit(&image->size_bytes, memory_order_relaxed) != sizeof(*image))
		return -EPROTO;
	*why = "the page is of an earlier boot";
	for (size_t i = 0; i < TIMEPAGE_BOOT_BYTES / 8; i++) {
		if (atomic_load_explicit(&image->boot[i], memory_order_relaxed) != here->boot[i])
			return -ENOENT;
	}
	*why = "the page is of another counter";
	if (atomic_load_explicit(&image->counter_kind, memory_order_relaxed) != here->counter_kind)
		return -ENOTSUP;
	*why = "";
	return 0;
}
