/* SPDX-License-Identifier: Apache-2.0 */
/* What the verbs of bw-rtdip that measure have in common: their options, the end that they open, the thread that does the rest. */
#ifndef RTDIP_MEASUREMENT_H
#define RTDIP_MEASUREMENT_H

#include "base/json.h"
#include "config/options.h"
#include "ends.h"
#include "port/port.h"

enum { MESSAGE_MIN_BYTES = 4, MESSAGE_MAX_BYTES = END_MESSAGE_MAX_BYTES, OWN_OPTIONS = 3, COMMON_OPTIONS = 11 };

/* What every verb takes. */
struct common {
	const char *local, *peer, *socket_path, *packets;
	int64_t size_bytes, priority, cpu, busy_poll_us;
	bool busy, bypass, fragments;
};

extern const struct common measure_defaults;

/* A measurement: opened, run by a thread of the priority that is asked for, and told. */
struct run {
	const char *tool;
	const char *thread; /* its name, as traces show it */
	struct common common;
	struct end end;
	struct peer peer;
	enum rtdip_priority packets;
	struct port_scheduling scheduling;
	int err; /* that ended it; 0: none */
};

/** Fill in the COMMON_OPTIONS rows that every verb has. */
void measure_add_options(struct option *options, struct common *common);

/** Open the end, read the peer, and let a thread do the rest. @return an exit code, with a line on stderr */
int measure_run(struct run *run, bool has_peer, void (*body)(void *));

/** Begin a line of the answer. */
void measure_open_line(struct json *json, const struct run *run, const char *type);
void measure_close_line(struct json *json);
/** End the result with what every one ends with, and close the end. */
void measure_close_result(struct json *json, struct run *run);

/** Read the next message. @return bytes, or -EAGAIN: none within a time after which a stop is looked for */
int64_t measure_next_message(struct run *run, struct peer *from, enum rtdip_priority *priority, void *data, size_t room_bytes);

/**
 * Wait for a message until a time, or a stop is asked for.
 *
 * @return bytes, or -errno: -ETIMEDOUT; -EINTR: look for a stop
 */
int64_t measure_await_reply(struct run *run, int64_t deadline_monotonic_ns, struct peer *from, enum rtdip_priority *priority,
			    void *data, size_t room_bytes);

#endif
