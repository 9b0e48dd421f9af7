/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A CLOCK of the command line, whatever it is: opened by its name, read as int64 ns TAI. One table row a kind.
 * The clocks that have no epoch (monotonic-raw, tsc) are set to this machine's TAI when a measurement begins.
 */
#ifndef BW_CLOCK_SOURCE_H
#define BW_CLOCK_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock/bw_clock_plugin.h"
#include "clock/card/card.h"
#include "base/json.h"
#include "port/port.h"
#include "port/port_clock.h"
#include "timeservice/bwtime.h"

enum { SOURCE_ERROR_BYTES = 256 };

struct source;

/* What a clock tells of a reading of its own: the truth is within reading - low_ns .. reading + high_ns; U (k = 2). */
struct source_error {
	int64_t low_ns, high_ns, u_ns;
};

struct source_kind {
	const char *name;
	bool takes_argument, needs_argument;
	/* 0 or -errno with a line in error; -EINVAL is bad input, all else a missing capability */
	int (*open)(struct source *source, const char *argument, char *error, size_t error_bytes);
	void (*close)(struct source *source);
	int (*read)(struct source *source, int64_t *tai_ns); /* 0 or -errno */
	/* Before and after a measurement; 0 or -errno with a line in error: then the measurement is not valid. May be NULL. */
	int (*begin)(struct source *source, char *error, size_t error_bytes);
	int (*end)(struct source *source, char *error, size_t error_bytes);
	int64_t (*bound_ns)(const struct source *source); /* negative: unknown. NULL: unknown */
	/* What it told of the reading before; such a clock answers -ENODATA while it has no time with a bound. NULL: it tells nothing */
	struct source_error (*reading_error)(const struct source *source);
	void (*facts)(const struct source *source, struct json *json);
	/* By how much it was stepped right before its last reading; 0: it was not. NULL: it does not tell */
	int64_t (*step_ns)(const struct source *source);
	/* Why its last reading failed with -errno. NULL: errno says it */
	const char *(*why)(const struct source *source, int err);
};

struct source {
	const char *text; /* as it was given: outlives the source */
	const struct source_kind *kind;
	struct port_tai tai;
	int64_t add_ns; /* to what is read */
	enum port_kernel_clock kernel_clock;
	struct port_phc *phc;
	struct card card;
	struct {
		uint64_t hz, first_ticks;
		double ns_per_tick;
	} tsc;
	struct {
		void *object, *state;
		struct bw_clock_plugin table;
	} plugin;
	struct {
		struct bwtime *handle;
		struct bwtime_stamp stamp; /* of the last reading */
		int64_t largest_bound_ns;
	} timeservice;
};

/**
 * Open a clock by its name.
 *
 * @param tai_utc_s  TAI - UTC where the kernel does not know it
 * @return 0, or -errno with one line in error (-EINVAL: bad input)
 */
int source_open(struct source *source, const char *text, int tai_utc_s, char *error, size_t error_bytes);
void source_close(struct source *source);
int source_begin(struct source *source, char *error, size_t error_bytes);
int source_end(struct source *source, char *error, size_t error_bytes);
/**
 * Read a PHC by one of the kernel's cross stamps from now on, instead of clock_gettime.
 *
 * @return 0, -EINVAL for another kind of clock, -ENOTSUP where driver or kernel have no such reading, or -errno
 */
int source_phc_read(struct source *source, enum port_phc_read read);
/** Exit code for a failure of source_open. */
int source_exit_code(int err);
/** Write the object "device" or "reference". */
void source_report(const struct source *source, struct json *json, const char *key);
/** Largest bound of its readings; negative: unknown. */
int64_t source_bound_ns(const struct source *source);

/** Bound of its last reading where it tells one, else the largest of all; negative: unknown. */
int64_t source_reading_bound_ns(const struct source *source);
/** By how much it was stepped right before its last reading; 0: it was not, or does not tell. */
int64_t source_step_ns(const struct source *source);
/** Why a reading failed with -errno. */
const char *source_why(const struct source *source, int err);

static inline int source_read(struct source *source, int64_t *tai_ns)
{
	return source->kind->read(source, tai_ns);
}

extern const struct source_kind source_phc, source_card, source_plugin, source_timeservice;

#endif
