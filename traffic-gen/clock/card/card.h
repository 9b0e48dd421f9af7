/* SPDX-License-Identifier: Apache-2.0 */
/* The virtual timecard as a guest reads it: calibrate the counter against the host's, then follow the line on the page. */
#ifndef BW_CLOCK_CARD_H
#define BW_CLOCK_CARD_H

#include <stddef.h>
#include <stdint.h>

#include "clock/card/calibration.h"
#include "clock/card/page.h"
#include "port/port_clock.h"

#define CARD_TRIAL_NS INT64_C(20000000)

enum { CARD_ERROR_BYTES = 256 };

struct card {
	struct port_page mapping;
	struct card_page *page;
	struct counter_scale scale;
	enum card_unit unit;
	uint32_t request;               /* number of the last request */
	struct calibration calibration; /* the first one: what is read is corrected by it */
	struct card_line line;          /* the current one */
	uint32_t line_sequence;         /* of the posting when `line` was read */
	bool line_read;
	uint64_t first_steps;           /* of the first line */
	int64_t bound_max_ns;           /* largest bound of a line that was used, calibration not included */
};

/**
 * Map a page and check that a server has prepared it.
 *
 * @param path   NULL: the guest's ivshmem device
 * @param error  receives what is wrong, one line
 * @return 0 or -errno
 */
int card_open(struct card *card, const char *path, char *error, size_t error_bytes);
void card_close(struct card *card);
/**
 * Exchange stamps with the server for a while; the server answers while it runs.
 *
 * @return 0; -ETIMEDOUT: nobody answers; -EBUSY: others calibrate all the time; -EBADMSG: no answer can be right
 */
int card_calibrate(struct card *card, int64_t trial_ns, struct calibration *calibration);
/** Calibrate again and again until the bound is 1 us or better, for a second at most; the best one counts. */
int card_calibrate_well(struct card *card, struct calibration *calibration);
/** Calibrate, take it as this card's calibration, and wait for a line. @return 0 or as card_calibrate, card_read */
int card_begin(struct card *card);
/**
 * Read the time. Real-time safe: no system call.
 *
 * @return 0; -ETIME: the line is older than a second; -ENODATA: there is none; -EBADMSG: the page is no longer right
 */
int card_read(struct card *card, int64_t *tai_ns);
/** Half the shortest round trip of the calibration and the counter's resolution, in ns. */
int64_t card_calibration_bound_ns(const struct card *card);
/** Largest bound of all readings so far, of calibration and line. */
int64_t card_bound_ns(const struct card *card);

#endif
