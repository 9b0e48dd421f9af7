/* SPDX-License-Identifier: Apache-2.0 */
/* Doing to a clock what the servo says: a step, a frequency, a slew by the kernel's phase-locked loop. */
#ifndef BW_NTP_DISCIPLINE_H
#define BW_NTP_DISCIPLINE_H

#include <stdint.h>

#include "ntp_servo.h"
#include "port/port_frequency.h"

/**
 * Correct a clock.
 *
 * @param clock     CLOCK_REALTIME
 * @param answer    of the servo; what is no correction leaves the clock alone
 * @param constant  of the kernel's loop
 * @return 0 or -errno
 */
int ntp_discipline(const struct frequency_clock *clock, const struct ntp_servo_answer *answer, int64_t constant);

#endif
