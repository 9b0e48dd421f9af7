/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sleeping however long, in pieces: that the process is to end is heard within one of them, and so is a step of the clock. A
 * signal wakes one thread of a process alone, and none on Windows.
 */
#ifndef BW_TIME_HEARD_SLEEP_H
#define BW_TIME_HEARD_SLEEP_H

#include <errno.h>

#include "port/port.h"

#define HEARD_PIECE_NS INT64_C(100000000)

/** Sleep until an instant of CLOCK_MONOTONIC. @return 0, or -EINTR: the process is to end */
static inline int heard_sleep_until_monotonic_ns(int64_t deadline_monotonic_ns)
{
	for (;;) {
		int64_t now_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);
		int64_t left_ns = deadline_monotonic_ns - now_monotonic_ns;

		if (port_stop_requested())
			return -EINTR;
		if (left_ns <= 0)
			return 0;
		port_clock_sleep_until_ns(PORT_CLOCK_MONOTONIC,
					  left_ns > HEARD_PIECE_NS ? now_monotonic_ns + HEARD_PIECE_NS : deadline_monotonic_ns);
	}
}

/**
 * Sleep until an instant of TAI. The clock that does not step is read first: who is held up between the two readings wakes up
 * too early, and looks again.
 *
 * @return 0, or -EINTR: the process is to end
 */
static inline int heard_sleep_until_tai_ns(const struct port_tai *tai, int64_t deadline_tai_ns)
{
	for (;;) {
		int64_t now_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);
		int64_t left_ns = deadline_tai_ns - port_tai_now_ns(tai);

		if (port_stop_requested())
			return -EINTR;
		if (left_ns <= 0)
			return 0;
		port_clock_sleep_until_ns(PORT_CLOCK_MONOTONIC,
					  now_monotonic_ns + (left_ns > HEARD_PIECE_NS ? HEARD_PIECE_NS : left_ns));
	}
}

#endif
