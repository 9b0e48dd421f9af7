/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Port layer: a clock of this machine that is steered: CLOCK_REALTIME, or the clock of a network card (PHC).
 *
 * Parts per billion; positive: the clock runs faster than its oscillator (adjtimex(2), ADJ_FREQUENCY).
 */
#ifndef BW_PORT_FREQUENCY_H
#define BW_PORT_FREQUENCY_H

#include <stdint.h>

struct frequency_clock {
	int id;         /* as the kernel numbers clocks */
	int fd;         /* of the PHC's device; -1: the system clock */
	double max_ppb; /* largest correction either way */
};

/**
 * Open a clock.
 *
 * @param phc  device of a PHC, such as /dev/ptp0; NULL: CLOCK_REALTIME
 * @return 0 or -errno: -ENODEV not a PHC, -ENOTSUP it cannot be steered, what open(2) says otherwise
 */
int frequency_open(struct frequency_clock *clock, const char *phc);
void frequency_close(struct frequency_clock *clock);

/** Read the correction in force. @return 0 or -errno */
int frequency_get(const struct frequency_clock *clock, double *ppb);

/** Set the correction, to 2^-16 ppm. @return 0 or -errno: -EPERM, -ERANGE beyond max_ppb */
int frequency_set(const struct frequency_clock *clock, double ppb);

/** Step the clock; positive: it is put ahead. @return 0 or -errno */
int frequency_clock_step(const struct frequency_clock *clock, int64_t step_ns);

/**
 * Hand an offset of CLOCK_REALTIME to the kernel's phase-locked loop (ntp_adjtime); 0 begins with a loop that has nothing left
 * to do.
 *
 * @param correction_ns  positive: the clock is put ahead
 * @param time_constant  of the loop, 0..10
 * @return 0 or -errno
 */
int frequency_loop_slew(int64_t correction_ns, int64_t time_constant);

#endif
