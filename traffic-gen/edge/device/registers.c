/* SPDX-License-Identifier: Apache-2.0 */
#include "edge/device/registers.h"

#include <errno.h>

enum { CALIBRATION_RETRIES = 64 };

const char *const edge_output_names[EDGE_OUTPUTS] = { "sdp-out", "card-pps", "tgpio-out", "gpio" };
const char *const edge_capture_names[EDGE_CAPTURES] = { "tgpio-in", "sdp-in" };

/* ---- grids of a faster counter ------------------------------------------------------------------------------------- */

uint64_t edge_grid_at(uint64_t counter, uint64_t counter_hz, uint64_t grid_hz)
{
	return counter / counter_hz * grid_hz + counter % counter_hz * grid_hz / counter_hz;
}

uint64_t edge_grid_tick(uint64_t value, uint64_t counter_hz, uint64_t grid_hz)
{
	return value / grid_hz * counter_hz + (value % grid_hz * counter_hz + grid_hz - 1) / grid_hz;
}

uint64_t edge_grid_from(uint64_t counter, uint64_t counter_hz, uint64_t grid_hz)
{
	return counter ? edge_grid_at(counter - 1, counter_hz, grid_hz) + 1 : 0;
}

/* ---- outputs ------------------------------------------------------------------------------------------------------- */

int edge_command_begin(struct edge_output *output)
{
	uint32_t head = atomic_load_explicit(&output->head, memory_order_relaxed);

	if (head - atomic_load_explicit(&output->tail, memory_order_acquire) >= EDGE_RING_COMMANDS)
		return -EAGAIN;
	atomic_store_explicit(&output->begun, head + 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst); /* the tick is read after the announcement can be seen */
	return 0;
}

void edge_command_end(struct edge_output *output, const struct edge_command *command)
{
	uint32_t head = atomic_load_explicit(&output->head, memory_order_relaxed);
	struct edge_slot *slot = &output->ring[head % EDGE_RING_COMMANDS];

	atomic_store_explicit(&slot->at, command->at, memory_order_relaxed);
	atomic_store_explicit(&slot->kind, command->kind, memory_order_relaxed);
	atomic_store_explicit(&slot->first, (uint64_t)command->first, memory_order_relaxed);
	atomic_store_explicit(&slot->second, (uint64_t)command->second, memory_order_relaxed);
	atomic_store_explicit(&output->head, head + 1, memory_order_release);
}

void edge_command_abandon(struct edge_output *output)
{
	atomic_store_explicit(&output->begun, atomic_load_explicit(&output->head, memory_order_relaxed),
			      memory_order_release);
}

bool edge_command_pending(const struct edge_output *output)
{
	uint32_t begun;

	atomic_thread_fence(memory_order_seq_cst); /* the counter was read before */
	begun = atomic_load_explicit(&output->begun, memory_order_relaxed);
	return begun != atomic_load_explicit(&output->head, memory_order_acquire);
}

int edge_command_take(struct edge_output *output, uint32_t *tail, struct edge_command *command)
{
	uint32_t head = atomic_load_explicit(&output->head, memory_order_acquire);
	const struct edge_slot *slot = &output->ring[*tail % EDGE_RING_COMMANDS];

	if (head == *tail)
		return -EAGAIN;
	if (head - *tail > EDGE_RING_COMMANDS) {
		*tail = head;
		atomic_store_explicit(&output->tail, head, memory_order_release);
		return -EBADMSG;
	}
	*command = (struct edge_command){
		.at = atomic_load_explicit(&slot->at, memory_order_relaxed),
		.kind = (uint32_t)atomic_load_explicit(&slot->kind, memory_order_relaxed),
		.first = (int64_t)atomic_load_explicit(&slot->first, memory_order_relaxed),
		.second = (int64_t)atomic_load_explicit(&slot->second, memory_order_relaxed),
	};
	++*tail;
	atomic_store_explicit(&output->tail, *tail, memory_order_release);
	return 0;
}

/* ---- captures ------------------------------------------------------------------------------------------------------ */

int edge_capture_put(struct edge_capture *capture, uint32_t *head, uint64_t sequence, int64_t instant)
{
	struct edge_captured *slot = &capture->ring[*head % EDGE_RING_CAPTURES];

	if (*head - atomic_load_explicit(&capture->tail, memory_order_acquire) >= EDGE_RING_CAPTURES)
		return -ENOSPC;
	atomic_store_explicit(&slot->sequence, sequence, memory_order_relaxed);
	atomic_store_explicit(&slot->instant, instant, memory_order_relaxed);
	atomic_store_explicit(&capture->head, ++*head, memory_order_release);
	return 0;
}

void edge_capture_start(struct edge_capture *capture, uint64_t from)
{
	atomic_store_explicit(&capture->tail, atomic_load_explicit(&capture->head, memory_order_acquire),
			      memory_order_release);
	atomic_store_explicit(&capture->from, from, memory_order_release);
}

void edge_capture_stop(struct edge_capture *capture)
{
	atomic_store_explicit(&capture->from, 0, memory_order_release);
}

int edge_capture_take(struct edge_capture *capture, uint64_t *sequence, int64_t *instant)
{
	uint32_t tail = atomic_load_explicit(&capture->tail, memory_order_relaxed);
	uint32_t head = atomic_load_explicit(&capture->head, memory_order_acquire);
	const struct edge_captured *slot = &capture->ring[tail % EDGE_RING_CAPTURES];

	if (head == tail)
		return -EAGAIN;
	if (head - tail > EDGE_RING_CAPTURES) {
		atomic_store_explicit(&capture->tail, head, memory_order_release);
		return -EBADMSG;
	}
	if (sequence)
		*sequence = atomic_load_explicit(&slot->sequence, memory_order_relaxed);
	*instant = atomic_load_explicit(&slot->instant, memory_order_relaxed);
	atomic_store_explicit(&capture->tail, tail + 1, memory_order_release);
	return 0;
}

/* ---- calibration --------------------------------------------------------------------------------------------------- */

void edge_calibration_write(struct edge_calibration *calibration, uint64_t offset, uint64_t bound)
{
	uint32_t sequence = atomic_load_explicit(&calibration->sequence, memory_order_relaxed);

	sequence += 1 + sequence % 2; /* odd, also after a writer that died */
	atomic_store_explicit(&calibration->sequence, sequence, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
	atomic_store_explicit(&calibration->offset, offset, memory_order_relaxed);
	atomic_store_explicit(&calibration->bound, bound, memory_order_relaxed);
	atomic_store_explicit(&calibration->sequence, sequence + 1 ? sequence + 1 : 2, memory_order_release);
}

int edge_calibration_read(const struct edge_calibration *calibration, uint64_t *offset, uint64_t *bound)
{
	for (int retry = 0; retry < CALIBRATION_RETRIES; retry++) {
		uint32_t before = atomic_load_explicit(&calibration->sequence, memory_order_acquire);

		if (before == 0)
			return -ENODATA;
		*offset = atomic_load_explicit(&calibration->offset, memory_order_relaxed);
		*bound = atomic_load_explicit(&calibration->bound, memory_order_relaxed);
		atomic_thread_fence(memory_order_acquire);
		if (before % 2 == 0 && atomic_load_explicit(&calibration->sequence, memory_order_relaxed) == before)
			return 0;
	}
	return -EAGAIN;
}
