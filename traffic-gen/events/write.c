/* SPDX-License-Identifier: Apache-2.0 */
/* What a point does while it is on. Neither locks nor waits: at any moment a signal handler may come in between and do the same. */
#include <stdbool.h>
#include <string.h>

#include "events/session.h"
#include "port/port_clock.h"

static uint64_t now_ticks(const struct bw_events *events)
{
	return events->map.header.counter_kind == PORT_COUNTER_NONE ? port_events_clock_ns() : port_counter_before();
}

/* Take slots of a ring. Returns false where it has no room, which is counted. */
static bool reserve(struct events_ring *ring, uint32_t ring_slots, uint32_t slots, uint64_t *position_out)
{
	uint64_t head = __atomic_load_n(&ring->head, __ATOMIC_RELAXED);

	do {
		/* Who collects has read all up to the tail before it moved it. */
		if (head + slots - __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE) > ring_slots) {
			__atomic_fetch_add(&ring->lost, 1, __ATOMIC_RELAXED);
			return false;
		}
	} while (!__atomic_compare_exchange_n(&ring->head, &head, head + slots, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	*position_out = head;
	return true;
}

/* Take slots of a ring of history: the newest take the place of the oldest. */
static uint64_t take_over(struct events_ring *ring, uint32_t slots)
{
	return __atomic_fetch_add(&ring->head, slots, __ATOMIC_RELAXED);
}

/* Bytes of an event, in the slots behind its first. */
static void write_pieces(struct events_slot *slots, uint32_t mask, uint64_t position, const uint8_t *bytes, size_t size_bytes)
{
	for (size_t at = 0; at < size_bytes; at += EVENTS_PIECE_BYTES) {
		struct events_piece *piece = (struct events_piece *)(void *)&slots[++position & mask];
		size_t rest = size_bytes - at;

		memcpy(piece->bytes, bytes + at, rest < EVENTS_PIECE_BYTES ? rest : EVENTS_PIECE_BYTES);
		__atomic_store_n(&piece->commit, events_commit(position, false), __ATOMIC_RELEASE);
	}
}

static void stream_write(const struct bw_point *point, unsigned int stream, uint64_t ticks, int64_t tag, const void *data,
			 size_t size_bytes)
{
	const struct events_map *map = &point->events->map;
	const uint32_t ring_slots = map->header.streams[stream].ring_slots, mask = ring_slots - 1;
	const uint32_t number = port_events_cpu() % map->header.ring_count;
	struct events_ring *ring = &map->rings[stream * map->header.ring_count + number];
	const uint32_t needed = 1 + (uint32_t)((size_bytes + EVENTS_PIECE_BYTES - 1) / EVENTS_PIECE_BYTES);
	struct events_slot *slots, *slot;
	uint64_t position;

	if (map->header.streams[stream].history)
		position = take_over(ring, needed);
	else if (!reserve(ring, ring_slots, needed, &position))
		return;
	slots = events_slots(map, stream, number);
	slot = &slots[position & mask];
	slot->ticks = ticks;
	slot->tag = tag;
	slot->thread = port_events_thread();
	slot->lost = (uint32_t)__atomic_load_n(&ring->lost, __ATOMIC_RELAXED);
	slot->point = (uint16_t)point->number;
	slot->size_bytes = (uint16_t)size_bytes;
	write_pieces(slots, mask, position, data, size_bytes);
	__atomic_store_n(&slot->commit, events_commit(position, true), __ATOMIC_RELEASE);
}

static struct events_state *state_of(const struct bw_point *point, unsigned int stream)
{
	const struct events_map *map = &point->events->map;

	return &map->states[stream * map->header.point_count + point->number];
}

/* Whether a filter passes an event on. */
static bool passes(struct events_state *state, int64_t tag, const void *data, size_t size_bytes)
{
	int64_t value = tag;

	if (!state->every)
		return true;
	if (size_bytes >= sizeof(value))
		memcpy(&value, data, sizeof(value));
	if (value < state->min || value > state->max)
		return false;
	return __atomic_fetch_add(&state->seen, 1, __ATOMIC_RELAXED) % state->every == 0;
}

/* Say that a stream's history is to be written; the first to say so counts. */
static void trigger(const struct bw_point *point, unsigned int stream, uint64_t ticks, int64_t tag)
{
	struct events_control *control = point->events->control;
	uint64_t none = 0;

	if (!(point->events->map.triggers[point->number] >> stream & 1) || !control->streams[stream].history)
		return;
	if (__atomic_compare_exchange_n(&control->streams[stream].triggered_ticks, &none, ticks, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		control->streams[stream].triggered_tag = tag;
}

static void write_at(const struct bw_point *point, uint64_t ticks, int64_t tag, const void *data, size_t size_bytes)
{
	if (size_bytes > BW_EVENT_DATA_MAX_BYTES)
		size_bytes = BW_EVENT_DATA_MAX_BYTES;
	for (unsigned int streams = *point->on, stream = 0; streams; streams >>= 1, stream++)
		if ((streams & 1) && passes(state_of(point, stream), tag, data, size_bytes)) {
			stream_write(point, stream, ticks, tag, data, size_bytes);
			trigger(point, stream, ticks, tag);
		}
}

void bw_event_write(const struct bw_point *point, int64_t tag, const void *data, size_t size_bytes)
{
	write_at(point, now_ticks(point->events), tag, data, size_bytes);
}

uint64_t bw_events_ticks(const struct bw_point *point)
{
	return now_ticks(point->events);
}

void bw_interval_write(const struct bw_point *point, uint64_t began_ticks, int64_t tag)
{
	uint64_t ticks = now_ticks(point->events), length_ticks = ticks - began_ticks;

	if (began_ticks)
		write_at(point, ticks, tag, &length_ticks, sizeof(length_ticks));
}

/* Cells of a histogram: below, each bucket, above. */
static uint64_t *cells_of(const struct bw_point *point, const struct events_state *state)
{
	return (uint64_t *)(void *)(point->events->map.base + state->cells);
}

static uint32_t cell_number(const struct bw_point_description *description, int64_t value)
{
	uint64_t width, above;

	if (value < description->low)
		return 0;
	if (value >= description->high)
		return description->buckets + 1;
	width = (uint64_t)description->high - (uint64_t)description->low;
	above = (uint64_t)value - (uint64_t)description->low;
	if (width >> 54) { /* else their product has room */
		width >>= 10;
		above >>= 10;
	}
	return 1 + (uint32_t)(above * description->buckets / width);
}

void bw_value_add(const struct bw_point *point, int64_t value)
{
	for (unsigned int streams = *point->on, stream = 0; streams; streams >>= 1, stream++) {
		struct events_state *state = state_of(point, stream);

		if (!(streams & 1))
			continue;
		__atomic_fetch_add(&state->sum, value, __ATOMIC_RELAXED);
		__atomic_fetch_add(&state->count, 1, __ATOMIC_RELAXED);
		if (point->description->kind == BW_POINT_HISTOGRAM)
			__atomic_fetch_add(&cells_of(point, state)[cell_number(point->description, value)], 1, __ATOMIC_RELAXED);
	}
}

void bw_value_log(const struct bw_point *point)
{
	uint64_t ticks = now_ticks(point->events);

	for (unsigned int streams = *point->on, stream = 0; streams; streams >>= 1, stream++) {
		struct events_state *state = state_of(point, stream);
		uint64_t values[1 + BW_HISTOGRAM_BUCKETS_MAX + 2];
		uint32_t cells = point->description->kind == BW_POINT_HISTOGRAM ? point->description->buckets + 2 : 0;

		if (!(streams & 1))
			continue;
		values[0] = __atomic_load_n(&state->count, __ATOMIC_RELAXED);
		for (uint32_t i = 0; i < cells; i++)
			values[1 + i] = __atomic_load_n(&cells_of(point, state)[i], __ATOMIC_RELAXED);
		stream_write(point, stream, ticks, __atomic_load_n(&state->sum, __ATOMIC_RELAXED), values, (1 + cells) * sizeof(*values));
	}
}

void bw_value_reset(const struct bw_point *point)
{
	for (unsigned int streams = *point->on, stream = 0; streams; streams >>= 1, stream++) {
		struct events_state *state = state_of(point, stream);

		if (!(streams & 1))
			continue;
		__atomic_store_n(&state->sum, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&state->count, 0, __ATOMIC_RELAXED);
		if (point->description->kind == BW_POINT_HISTOGRAM)
			for (uint32_t i = 0; i < point->description->buckets + 2; i++)
				__atomic_store_n(&cells_of(point, state)[i], 0, __ATOMIC_RELAXED);
	}
}
