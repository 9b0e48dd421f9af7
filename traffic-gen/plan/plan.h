/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Patterns (what is sent) and plans (who sends it when, to whom): the files of docs/native-tools.md, read and validated.
 *
 * A loaded pattern or plan is complete and consistent: whoever holds one need not check it again.
 */
#ifndef BW_PLAN_H
#define BW_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/address.h"
#include "config/schema.h"

#define PLAN_ID_MIN 10
#define PLAN_ID_MAX 6559
#define PLAN_PRODUCER_MAX 655
#define PLAN_MESSAGE_MIN_BYTES 10
#define PLAN_MESSAGE_MAX_BYTES 16777216
#define PLAN_UDP_MAX_BYTES 65507
#define PLAN_NAME_BYTES 64     /* names, with their terminating 0 */
#define PLAN_CLOCK_BYTES 1024  /* a CLOCK as bw-clock names it, with its terminating 0 */
#define PLAN_SYSTEM_CLOCK "realtime"
#define PLAN_SOURCE_BYTES 1024 /* where a pattern's numbers come from, with its terminating 0 */

/** How the messages of a stream go; `transports` of transport.h has the code of each. */
enum transport { TRANSPORT_TCP, TRANSPORT_UDP, TRANSPORT_RTDIP, TRANSPORTS };

/** What a transport can carry, as far as patterns and plans ask. */
struct transport_limits {
	const char *name; /* as files write it */
	uint32_t message_max_bytes;
};

/** See docs/native-tools.md, "Phases". */
enum phase { PHASE_ALIGNED_12, PHASE_ALIGNED_48, PHASE_STAGGERED };

enum correction { CORRECTION_NONE, CORRECTION_TWO_WAY };

struct stream {
	uint16_t id;           /* producer * 10 + message_type */
	uint16_t producer;     /* number of the producer, 1..655 */
	uint8_t message_type;  /* 0..9 */
	enum transport transport; /* as its pattern says: TCP or UDP */
	enum transport carrier;   /* what its messages go by: its transport, or what carries all of a run */
	uint32_t size_bytes;
	int64_t period_ns;
	int64_t budget_ns;     /* allowed received - scheduled */
	bool low_latency;
	int64_t phase_ns;      /* schedule of slot 0 after the start, 0 <= phase_ns < period_ns; 0 in a pattern as loaded */
};

/** Streams in ascending order of their ids. */
struct pattern {
	char name[PLAN_NAME_BYTES];
	char source[PLAN_SOURCE_BYTES];
	uint16_t producer_count;   /* distinct producers */
	uint16_t producer_highest; /* highest producer number: copy k of producer p has number p + k * producer_highest */
	size_t stream_count;
	struct stream *streams;
};

/** One distinct clock among the producers, and where its `offset --serve` answers. */
struct plan_clock {
	char name[PLAN_NAME_BYTES];
	struct address address; /* with port */
};

struct plan_producer {
	uint16_t number;
	struct address address; /* source address of its streams; port 0 */
	size_t clock;           /* index into plan.clocks */
	int64_t start_tai_ns;   /* CLOCK_TAI of the producer's own clock: slot 0 of phase 0 */
	int64_t rate_ppb;       /* rate of the producer's clock against the reference; positive: runs fast */
};

/** Producers in ascending order of their numbers, exactly those of the scaled pattern. */
struct plan {
	uint64_t nonce;
	enum phase phase;
	uint32_t scale;
	uint16_t base_port; /* the port of a stream is base_port + id, at most 65535 for each of them */
	int64_t warmup_ns;
	int64_t duration_ns;
	int64_t grace_ns;
	int64_t spin_ns;
	enum correction correction;
	int32_t tai_utc_s;
	bool capture_stamps;
	int busy_poll_us; /* of who receives; 0: by interrupts. Not in the file */
	const char *rtdip_socket; /* of the service of RTDiP that carries all streams; NULL: their transports do. Not in the file */
	struct address consumer; /* port 0 */
	char consumer_clock[PLAN_CLOCK_BYTES]; /* what it stamps with, as bw-clock names it; another than the system's: with CORRECTION_NONE alone */
	size_t clock_count;
	struct plan_clock *clocks;
	size_t producer_count;
	struct plan_producer *producers;
	struct pattern *pattern; /* scaled, with phases */
};

/**
 * Read and validate a pattern file as it stands: unscaled, phases 0.
 *
 * Return 0 with *pattern owned by the caller (pattern_destroy()), or with error filled in: -EINVAL (content),
 * -ENOMEM, -EFBIG (file over 4 MiB), or another -errno of opening and reading the file.
 */
int pattern_load(const char *path, struct pattern **pattern, struct schema_error *error);

/** Like pattern_load(), from memory; `path` names the text in errors. */
int pattern_parse(const char *path, const char *text, size_t length, struct pattern **pattern, struct schema_error *error);

void pattern_destroy(struct pattern *pattern);

/**
 * Read and validate a plan file with its pattern; scale the pattern and set its phases.
 *
 * Return 0 with *plan owned by the caller (plan_destroy()), or as pattern_load().
 */
int plan_load(const char *path, struct plan **plan, struct schema_error *error);

/** Like plan_load(), from memory; `path` names the text in errors. */
int plan_parse(const char *path, const char *text, size_t length, struct plan **plan, struct schema_error *error);

void plan_destroy(struct plan *plan);

/** Let RTDiP carry all streams, by a service whose socket this is; the text outlives the plan. */
void plan_carry_by_rtdip(struct plan *plan, const char *socket_path);

/** Find a producer by its number; NULL when the plan has none of it. O(log n). */
const struct plan_producer *plan_find_producer(const struct plan *plan, uint16_t number);

/** Never NULL. */
const struct transport_limits *transport_limits(enum transport transport);

/** Names as the files write them: "none", "two-way". */
const char *correction_name(enum correction correction);

/** Whether the consumer stamps with PLAN_SYSTEM_CLOCK. */
bool plan_stamps_by_system_clock(const struct plan *plan);

#endif
