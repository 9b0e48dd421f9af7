/* SPDX-License-Identifier: Apache-2.0 */
/* What the verbs echo and roundtrip have in common: options, their thread, their socket, and the moments that it stamps. */
#ifndef BW_SIDE_H
#define BW_SIDE_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/json.h"
#include "config/options.h"
#include "port/port.h"

#define LOOK_NS INT64_C(100000000) /* how often the stop flag is looked at while nothing comes */

enum { SIDE_OPTIONS = 5, SIDE_SCHEDULING_OPTIONS = 3, BATCH = 64 /* datagrams between two looks at the time and the stop flag */ };

struct side_options {
	int64_t priority, cpu, tai_utc_s;
	int64_t delay_receive_us, delay_send_us;
};

/* A known delay of one end, and what its waits have really taken. */
struct delays {
	int64_t delay_us;
	int64_t sum_ns;
	uint64_t count;
};

/* An instant in both of the system's clocks. */
struct moment {
	int64_t realtime_ns, monotonic_ns;
};

/* One end of round trips: its socket, and where it adds delay of its own. */
struct side {
	const char *tool; /* "bw-traffic echo" */
	struct side_options options;
	struct port_tai tai;
	struct delays receive, send; /* of its thread */
	port_socket sock;
	bool kernel_stamps;
	enum port_clock stamp_clock;
	atomic_bool finished; /* its thread has come to its end */
};

extern const struct side_options side_defaults;

/** Fill in the SIDE_SCHEDULING_OPTIONS rows of a verb without known delays, and the row that ends the table. */
void side_add_scheduling_options(struct option *rows, struct side_options *chosen);

/** Fill in the SIDE_OPTIONS rows that both verbs have, and the row that ends the table. */
void side_add_options(struct option *rows, struct side_options *chosen);

/** Open the socket; its stamps are asked for. @return 0 or -errno */
int side_open(struct side *side, const struct address *local);
void side_close(struct side *side);

/**
 * Run an end on a thread of its own, named as its verb, with the priority and the CPU that were asked for; it sets
 * finished when it ends.
 *
 * @param progress  called once a second meanwhile; may be NULL
 * @return an exit code
 */
int side_run(struct side *side, void (*run)(void *), void *argument, void (*progress)(void *argument, int64_t elapsed_ns),
	     struct port_scheduling *scheduling);

/** Write a line about what failed. @return EXIT_CAPABILITY */
int side_fail(const struct side *side, const char *what, const char *which, int err);

/** Write the two delays that were added: what was asked for, and what the waits took on average. */
void side_write_delays(struct json *json, const struct side *side);

/**
 * Wait inside a device: the last part of it is busy, so that it is not longer than it should. What it took is kept.
 *
 * @return that, in ns
 */
int64_t side_delay(struct delays *delays);

/** The moment in the clock that the kernel stamps by. */
static inline int64_t side_stamp_clock_ns(const struct side *side, const struct moment *moment)
{
	return side->stamp_clock == PORT_CLOCK_REALTIME ? moment->realtime_ns : moment->monotonic_ns;
}

/** A stamp of the kernel in that clock; 0: none. */
static inline int64_t side_stamp_ns(int64_t realtime_ns, int64_t monotonic_ns)
{
	return realtime_ns ? realtime_ns : monotonic_ns;
}

/**
 * Look for the kernel's stamp of the datagram that was sent after a moment; stamps of earlier ones are thrown away.
 *
 * @return the stamp, or 0: there is none (yet)
 */
int64_t side_transmitted_ns(const struct side *side, const struct moment *sent);

#endif
