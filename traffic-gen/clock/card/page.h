/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page of the virtual timecard: 4096 bytes that the bench's host and one guest map. Little endian; private to bw-clock.
 *
 * Units. A guest's counter runs at the rate of a counter of the host, a constant apart. CARD_UNIT_TSC: ticks of the host's
 * TSC, of an x86 guest. CARD_UNIT_NS: nanoseconds of the host's CLOCK_MONOTONIC, of an ARM guest under emulation, whose
 * CNTVCT is counted in nanoseconds too. What stands on the page is in units of the host's counter; a guest adds its calibrated
 * offset to its own.
 *
 * Each field has one writing side; neither trusts the other: card_posting_read() checks every figure, and nothing waits
 * without an end. Calibration: the guest writes a new request number, the host answers with its counter and that number.
 * A line is published in two copies, so that a reader always finds a whole one, also when its writer was
 * stopped half-way.
 */
#ifndef BW_CLOCK_PAGE_H
#define BW_CLOCK_PAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CARD_PAGE_BYTES 4096
#define CARD_MAGIC UINT64_C(0x3130445241435742) /* "BWCARD01": the last two digits are the version */
#define CARD_STALE_NS INT64_C(1000000000)       /* a line is not used when it is older */

enum card_unit { CARD_UNIT_NONE = 0, CARD_UNIT_TSC = 1, CARD_UNIT_NS = 2 };

enum { CARD_SOURCE_BYTES = 16, CARD_LINE_WORDS = 12 };

/* Locks of a page among the processes of one side (port_page_lock). */
enum card_lock { CARD_LOCK_SERVE = 0, CARD_LOCK_PUBLISH = 1, CARD_LOCK_CALIBRATE = 2 };

/* "Counter of the host -> TAI of a clock", as a straight line with its bound. */
struct card_line {
	enum card_unit unit;
	uint64_t counter;         /* where time and bound hold */
	int64_t tai_ns;
	double ns_per_unit;
	int64_t bound_ns;         /* |true time - tai_ns| at `counter` is at most this */
	int64_t bound_growth_ppb; /* growth of the bound with the line's age */
	int64_t wander_ppb_per_s; /* growth of that growth */
	uint64_t published;       /* counts the lines of this publisher, from 1 */
	uint64_t steps;           /* how often the clock contradicted its line */
	int64_t tai_utc_s;        /* of the clock's machine */
	char source[CARD_SOURCE_BYTES];
};

struct card_posting {
	_Atomic uint32_t sequence; /* odd: copy 0 is being written, read copy 1; even: the other way round */
	uint32_t reserved;
	_Atomic uint64_t copies[2][CARD_LINE_WORDS];
};

struct card_request {
	_Atomic uint32_t number;
	_Atomic uint32_t unit;
};

struct card_reply {
	_Atomic uint64_t counter;
	_Atomic uint32_t number;
	uint32_t reserved;
};

struct card_page {
	_Atomic uint64_t magic;                                  /* host */
	_Alignas(1024) struct card_posting host_line;            /* host: time of the source */
	_Alignas(512) struct card_reply reply;                   /* host */
	_Alignas(512) struct card_request request;               /* guest */
	_Alignas(1024) struct card_posting guest_line;           /* guest: its own time, of `card publish` */
};

_Static_assert(sizeof(struct card_page) <= CARD_PAGE_BYTES, "a page");

/** Publish a line; one writing thread. */
void card_posting_write(struct card_posting *posting, const struct card_line *line);
/**
 * Read the current line and check it.
 *
 * @return 0; -ENODATA: none was published; -EBADMSG: its figures cannot be; -EAGAIN: it changed all the time. *line is
 *         written only on success.
 */
int card_posting_read(const struct card_posting *posting, struct card_line *line);

/** Age of a line in ns; saturates at about +-36 years. */
int64_t card_line_age_ns(const struct card_line *line, uint64_t counter);
/**
 * Time and its bound by a line. Both pointers may be NULL.
 *
 * @return 0; -ETIME: the line is older than CARD_STALE_NS; -EBADMSG: it is of the future
 */
int card_line_at(const struct card_line *line, uint64_t counter, int64_t *tai_ns, int64_t *bound_ns);

#endif
