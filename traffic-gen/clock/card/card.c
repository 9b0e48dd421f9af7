/* SPDX-License-Identifier: Apache-2.0 */
#include "clock/card/card.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "port/port.h"
#include "clock/card/ticks.h"

#define LOCK_TIMEOUT_NS INT64_C(5000000000)
#define ANSWER_TIMEOUT_NS INT64_C(1000000000)
#define LINE_TIMEOUT_NS INT64_C(1000000000)
#define SPIN_NS INT64_C(300000) /* then the server sleeps, or needs our CPU */
#define NAP_NS INT64_C(200000)
#define GOAL_NS 1000                     /* a bound as good as this is taken at once */
#define GOAL_TIMEOUT_NS INT64_C(1000000000)
#define GOAL_AGE_NS INT64_C(40000000)    /* of a line: two periods of its publisher */
#define BREAK_NS INT64_C(5000000)        /* the scheduler may move one of us to another CPU */

enum { PATH_BYTES = 300, LOOKS = 1024 };

static void say(char *error, size_t error_bytes, const char *path, const char *what)
{
	snprintf(error, error_bytes, "%s: %s", path, what);
}

static const char *page_failure(int err)
{
	switch (err) {
	case -EMSGSIZE:
		return "shorter than a timecard's page";
	case -ENOTSUP:
		return "this system has no shared pages";
	default:
		return strerror(-err);
	}
}

/* Choose the units of the host's counter that this machine's one runs with. */
static int choose_unit(struct card *card)
{
	uint64_t hz = ticks_hz();

	if (hz == 0 || hz > UINT64_C(20000000000))
		return -ENOTSUP;
	if (port_counter_kind() == PORT_COUNTER_TSC) {
		card->unit = CARD_UNIT_TSC;
		card->scale = counter_scale_ticks(hz);
	} else if (hz <= UINT64_C(1000000000)) {
		card->unit = CARD_UNIT_NS;
		card->scale = counter_scale_ns(hz);
	} else {
		return -ENOTSUP;
	}
	return 0;
}

int card_open(struct card *card, const char *path, char *error, size_t error_bytes)
{
	char found[PATH_BYTES];
	int err;

	memset(card, 0, sizeof(*card));
	if (!path) {
		err = port_page_find(found, sizeof(found));
		if (err) {
			say(error, error_bytes, "card",
			    err == -ENODEV ? "this machine has no ivshmem device (1af4:1110)" : page_failure(err));
			return err;
		}
		path = found;
	}
	err = port_page_map(path, CARD_PAGE_BYTES, false, &card->mapping);
	if (err) {
		say(error, error_bytes, path, page_failure(err));
		return err;
	}
	card->page = card->mapping.address;
	err = choose_unit(card);
	if (err) {
		say(error, error_bytes, path, "this machine has no counter that can be mapped onto the host's");
	} else if (atomic_load(&card->page->magic) != CARD_MAGIC) {
		say(error, error_bytes, path, "no timecard's page: no server has prepared it, or one of another version");
		err = -EPROTO;
	}
	if (err)
		card_close(card);
	return err;
}

void card_close(struct card *card)
{
	port_page_unmap(&card->mapping);
	card->page = NULL;
}

static uint64_t units_now(const struct card *card)
{
	return counter_scale_units(&card->scale, port_counter_read());
}

/* Wait for the answer to the current request. Return 0 or -ETIMEDOUT. */
static int wait_answer(const struct card *card)
{
	int64_t begin_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);

	for (;;) {
		int64_t waited_ns;

		/* No pause between the looks: it takes longer than the answer, above all under emulation. */
		for (int look = 0; look < LOOKS; look++) {
			if (atomic_load_explicit(&card->page->reply.number, memory_order_acquire) == card->request)
				return 0;
		}
		waited_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC) - begin_monotonic_ns;
		if (waited_ns > ANSWER_TIMEOUT_NS)
			return -ETIMEDOUT;
		if (waited_ns > SPIN_NS)
			port_sleep_ns(NAP_NS);
	}
}

static int exchange(struct card *card, struct calibration *calibration)
{
	struct card_page *page = card->page;
	uint64_t t1, t2, t3;
	int err;

	/* Other processes of this machine have used numbers too: never one that was answered already. */
	card->request = atomic_load_explicit(&page->request.number, memory_order_relaxed) + 1;
	if (card->request == atomic_load_explicit(&page->reply.number, memory_order_relaxed))
		card->request++;
	atomic_store_explicit(&page->request.unit, card->unit, memory_order_relaxed);
	t1 = units_now(card);
	atomic_store_explicit(&page->request.number, card->request, memory_order_release);
	err = wait_answer(card);
	t3 = units_now(card);
	if (err)
		return err;
	t2 = atomic_load_explicit(&page->reply.counter, memory_order_relaxed);
	calibration_take(calibration, t1, t2, t3, card->scale.resolution);
	return 0;
}

int card_calibrate(struct card *card, int64_t trial_ns, struct calibration *calibration)
{
	int64_t end_monotonic_ns;
	int err = port_page_lock(&card->mapping, CARD_LOCK_CALIBRATE, LOCK_TIMEOUT_NS);

	if (err)
		return err;
	memset(calibration, 0, sizeof(*calibration));
	end_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC) + trial_ns;
	do {
		err = exchange(card, calibration);
	} while (!err && port_clock_now_ns(PORT_CLOCK_MONOTONIC) < end_monotonic_ns);
	port_page_unlock(&card->mapping, CARD_LOCK_CALIBRATE);
	if (calibration->exchanges)
		return 0;
	return err ? err : -EBADMSG;
}

int card_calibrate_well(struct card *card, struct calibration *calibration)
{
	int64_t deadline_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC) + GOAL_TIMEOUT_NS;
	double ns_per_unit = counter_scale_ns_per_unit(&card->scale);
	int err = card_calibrate(card, CARD_TRIAL_NS, calibration);

	while (!err && (double)calibration->bound * ns_per_unit > GOAL_NS &&
	       port_clock_now_ns(PORT_CLOCK_MONOTONIC) < deadline_monotonic_ns) {
		struct calibration again;

		port_sleep_ns(BREAK_NS);
		err = card_calibrate(card, CARD_TRIAL_NS, &again);
		if (!err && again.bound < calibration->bound)
			*calibration = again;
	}
	return err;
}

/* True when a line is as good as it gets: right after a start its rate is not known yet. */
static bool line_is_settled(const struct card *card)
{
	double age_s = (double)GOAL_AGE_NS * 1e-9;

	return (double)card->line.bound_ns + age_s * (double)card->line.bound_growth_ppb <= GOAL_NS;
}

int card_begin(struct card *card)
{
	int64_t deadline_monotonic_ns, tai_ns;
	int err = card_calibrate_well(card, &card->calibration);

	if (err)
		return err;
	/* The server turns to our units with our first request. */
	deadline_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC) + LINE_TIMEOUT_NS;
	for (;;) {
		card->line_read = false;
		err = card_read(card, &tai_ns);
		if ((!err && line_is_settled(card)) ||
		    port_clock_now_ns(PORT_CLOCK_MONOTONIC) > deadline_monotonic_ns ||
		    port_stop_requested())
			break;
		port_sleep_ns(NAP_NS);
	}
	card->first_steps = card->line.steps;
	card->bound_max_ns = 0;
	return err;
}

/* Counter of the host, by our counter and the calibration. */
static uint64_t card_counter(const struct card *card)
{
	return units_now(card) + card->calibration.offset;
}

static void note_bound(struct card *card, uint64_t counter)
{
	int64_t bound_ns;

	if (card->line_read && card_line_at(&card->line, counter, NULL, &bound_ns) == 0 && bound_ns > card->bound_max_ns)
		card->bound_max_ns = bound_ns;
}

/* Take the line on the page, if it is a new one. */
static int renew_line(struct card *card)
{
	uint32_t sequence = atomic_load_explicit(&card->page->host_line.sequence, memory_order_relaxed);
	struct card_line line;
	int err;

	if (card->line_read && sequence == card->line_sequence)
		return 0;
	err = card_posting_read(&card->page->host_line, &line);
	if (err == -EAGAIN && card->line_read)
		return 0; /* the next reading will have it */
	if (err)
		return err;
	if (line.unit != card->unit)
		return -ENODATA;
	note_bound(card, card_counter(card)); /* of the old line: it was largest at its end */
	card->line = line;
	card->line_sequence = sequence;
	card->line_read = true;
	return 0;
}

int card_read(struct card *card, int64_t *tai_ns)
{
	int err = renew_line(card);

	return err ? err : card_line_at(&card->line, card_counter(card), tai_ns, NULL);
}

int64_t card_calibration_bound_ns(const struct card *card)
{
	uint64_t units = card->calibration.bound + card->scale.resolution;

	return (int64_t)ceil((double)units * counter_scale_ns_per_unit(&card->scale));
}

int64_t card_bound_ns(const struct card *card)
{
	struct card now = *card;

	note_bound(&now, card_counter(card));
	return now.bound_max_ns + card_calibration_bound_ns(card);
}
