/* SPDX-License-Identifier: Apache-2.0 */
/**
 * When each stream sends: phases, scale, and the schedule of slots in integer arithmetic.
 *
 * Order of spreading: streams are ordered by (position in their producer, producer), where the position counts the
 * streams of one producer that are spread, in ascending order of their ids. So neighbours in time belong to different
 * producers, and the streams of one producer lie far apart.
 *
 *  - aligned-12: in each producer the stream with the largest message (of equals, the one with the lowest id) has phase 0.
 *    The K others get floor(period * (k + 1) / (K + 1)), k = 0..K-1 in the order above.
 *  - aligned-48: all streams have phase 0.
 *  - staggered: the K streams get floor(period * k / K), k = 0..K-1 in the order above.
 */
#ifndef BW_PHASE_H
#define BW_PHASE_H

#include <stdint.h>

#include "plan/plan.h"

/** Slots [warmup_end, end) of a stream are counted, [0, warmup_end) are warm-up. */
struct slot_range {
	uint32_t warmup_end;
	uint32_t end;
};

/** Names as the files write them, by enum phase; ends with NULL. */
extern const char *const phase_names[];

/** Name as the files write it: "aligned-12". */
const char *phase_name(enum phase phase);

/** Find a phase by its name. Return 0 or -EINVAL. */
int phase_by_name(const char *name, enum phase *phase);

/**
 * Repeat the producers of `file` `scale` times and set the phases of all streams.
 *
 * Return 0 with *scaled owned by the caller (pattern_destroy()); -ERANGE when scale is 0 or a producer's number passes
 * PLAN_PRODUCER_MAX; -ENOMEM.
 */
int phase_expand(const struct pattern *file, enum phase phase, uint32_t scale, struct pattern **scaled);

/**
 * Nominal time of slot k after the start of the run, in ns of the reference: phase + k * period.
 * No overflow for the slots below phase_slot_range().end; check a slot from the network against that first.
 */
int64_t phase_slot_ns(const struct stream *stream, uint32_t slot);

/**
 * Scheduled time of slot k in the producer's own CLOCK_TAI, in ns:
 * start_tai_ns + t + round(t * rate_ppb / 10^9), t = phase_slot_ns(); halves are rounded away from zero.
 */
int64_t phase_scheduled_tai_ns(const struct plan_producer *producer, const struct stream *stream, uint32_t slot);

/** Number of slots of a stream in the first span_ns of its schedule: those with phase_slot_ns() < span_ns. */
uint64_t phase_slots_before(const struct stream *stream, int64_t span_ns);

/** Warm-up and counted slots of a stream. plan_load() has checked that they fit 32 bits. */
struct slot_range phase_slot_range(const struct plan *plan, const struct stream *stream);

#endif
