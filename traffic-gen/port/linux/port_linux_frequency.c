/* SPDX-License-Identifier: Apache-2.0 */
/* Port layer for Linux: clocks that are steered. */
#define _GNU_SOURCE /* clock_adjtime */
#include "port/port_frequency.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/ptp_clock.h>
#include <math.h>
#include <sys/ioctl.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#include "base/time_units.h"

#define SYSTEM_CLOCK_MAX_PPB 500000.0
/* timex.freq is in units of 2^-16 ppm. */
#define UNITS_PER_PPB (65536.0 / 1000.0)

/* A file descriptor of a PHC as a clock: clock_gettime(2), "Dynamic clocks". */
static clockid_t clock_of_fd(int fd)
{
	return (clockid_t)((~(unsigned int)fd << 3) | 3u);
}

int frequency_open(struct frequency_clock *clock, const char *phc)
{
	struct ptp_clock_caps caps;

	if (!phc) {
		*clock = (struct frequency_clock){ CLOCK_REALTIME, -1, SYSTEM_CLOCK_MAX_PPB };
		return 0;
	}
	clock->fd = open(phc, O_RDWR | O_CLOEXEC);
	if (clock->fd < 0)
		return -errno;
	if (ioctl(clock->fd, PTP_CLOCK_GETCAPS, &caps)) {
		frequency_close(clock);
		return -ENODEV;
	}
	if (caps.max_adj <= 0) {
		frequency_close(clock);
		return -ENOTSUP;
	}
	clock->id = clock_of_fd(clock->fd);
	clock->max_ppb = caps.max_adj;
	return 0;
}

void frequency_close(struct frequency_clock *clock)
{
	if (clock->fd >= 0)
		close(clock->fd);
	clock->fd = -1;
}

int frequency_get(const struct frequency_clock *clock, double *ppb)
{
	struct timex tx = { .modes = 0 };

	if (clock_adjtime(clock->id, &tx) < 0)
		return -errno;
	*ppb = (double)tx.freq / UNITS_PER_PPB;
	return 0;
}

int frequency_set(const struct frequency_clock *clock, double ppb)
{
	struct timex tx = { .modes = ADJ_FREQUENCY };

	if (!(fabs(ppb) <= clock->max_ppb))
		return -ERANGE;
	tx.freq = lround(ppb * UNITS_PER_PPB);
	return clock_adjtime(clock->id, &tx) < 0 ? -errno : 0;
}

int frequency_clock_step(const struct frequency_clock *clock, int64_t step_ns)
{
	struct timex tx = { .modes = ADJ_SETOFFSET | ADJ_NANO };

	/* With ADJ_NANO tv_usec holds nanoseconds, and it has to lie within 0..10^9 - 1. */
	tx.time.tv_sec = step_ns / NS_PER_S;
	tx.time.tv_usec = step_ns % NS_PER_S;
	if (tx.time.tv_usec < 0) {
		tx.time.tv_sec -= 1;
		tx.time.tv_usec += NS_PER_S;
	}
	return clock_adjtime(clock->id, &tx) < 0 ? -errno : 0;
}

int frequency_loop_slew(int64_t correction_ns, int64_t time_constant)
{
	struct timex tx = { .modes = MOD_OFFSET | MOD_STATUS | MOD_TIMECONST | MOD_NANO, .status = STA_PLL };

	tx.offset = correction_ns;
	tx.constant = time_constant;
	return ntp_adjtime(&tx) < 0 ? -errno : 0;
}
