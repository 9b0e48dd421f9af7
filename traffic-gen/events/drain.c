/* SPDX-License-Identifier: Apache-2.0 */
#include "events/drain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "port/port.h"
#include "port/port_clock.h"

enum { BUFFER_SLOTS = 1 << 15, CLOCK_READS = 7 };

static FILE *open_output(const struct drain *drain, unsigned int stream, const char *output, const char *suffix)
{
	const char *last = strrchr(drain->path, '/'), *name = last ? last + 1 : drain->path;
	int stem = (int)(strlen(name) - strlen(EVENTS_RINGS_SUFFIX));
	char path[PORT_EVENTS_PATH_BYTES * 2];

	if (stem <= 0 || snprintf(path, sizeof(path), "%s/%.*s.%s%s" STREAM_FILE_SUFFIX, output, stem, name,
				  drain->map.header.streams[stream].name, suffix) >= (int)sizeof(path)) {
		errno = ENAMETOOLONG;
		return NULL;
	}
	return fopen(path, "wbx");
}

static int write_names(struct drain *drain, unsigned int stream)
{
	const struct events_header *header = &drain->map.header;
	struct stream_names names = {
		.pid = header->pid, .counter_hz = header->counter_hz, .counter_kind = header->counter_kind,
		.point_count = header->point_count, .ring_count = header->ring_count, .ring_slots = header->streams[stream].ring_slots,
	};

	memcpy(names.program, header->program, sizeof(names.program));
	memcpy(names.stream, header->streams[stream].name, sizeof(names.stream));
	if (fwrite(STREAM_FILE_MAGIC, 8, 1, drain->outputs[stream]) != 1)
		return stream_failure();
	return stream_block_write(drain->outputs[stream], STREAM_BLOCK_NAMES, 0, 0, &names, sizeof(names), drain->map.descriptions,
				  header->point_count * sizeof(*drain->map.descriptions));
}

static int open_outputs(struct drain *drain, const char *output, const char *suffix)
{
	int err = 0;

	for (unsigned int stream = 0; !err && stream < drain->map.header.stream_count; stream++) {
		drain->outputs[stream] = open_output(drain, stream, output, suffix);
		err = drain->outputs[stream] ? write_names(drain, stream) : -errno;
		if (!err && fflush(drain->outputs[stream])) /* who looks meanwhile finds a stream */
			err = stream_failure();
	}
	return err;
}

int drain_open(struct drain *drain, const char *path, const char *output, const char *suffix)
{
	int err;

	memset(drain, 0, sizeof(*drain));
	if (snprintf(drain->path, sizeof(drain->path), "%s", path) >= (int)sizeof(drain->path))
		return -ENAMETOOLONG;
	err = port_events_open(path, &drain->file);
	if (err)
		return err;
	err = events_map_check(drain->file.address, drain->file.size_bytes, &drain->map);
	if (!err) {
		drain->unfinished = calloc((size_t)drain->map.header.stream_count * drain->map.header.ring_count, sizeof(uint64_t));
		drain->buffer = malloc((size_t)BUFFER_SLOTS * EVENTS_SLOT_BYTES);
		err = drain->unfinished && drain->buffer ? open_outputs(drain, output, suffix) : -ENOMEM;
	}
	if (err) {
		for (unsigned int stream = 0; stream < EVENTS_STREAMS_MAX; stream++)
			if (drain->outputs[stream])
				fclose(drain->outputs[stream]);
		free(drain->unfinished);
		free(drain->buffer);
		port_events_close(&drain->file);
	}
	return err;
}

/* Copy slots that are finished. Returns how many; stops at the first that is not. */
static uint32_t copy_finished(const struct events_slot *slots, uint32_t mask, uint64_t position, uint32_t room, uint8_t *buffer)
{
	uint32_t done = 0;

	for (; done < room; done++, position++) {
		const struct events_slot *slot = &slots[position & mask];
		uint32_t commit = __atomic_load_n(&slot->commit, __ATOMIC_ACQUIRE);

		if ((commit & ~EVENTS_COMMIT_FIRST) != events_commit(position, false))
			break;
		memcpy(buffer + (size_t)done * EVENTS_SLOT_BYTES, slot, EVENTS_SLOT_BYTES);
	}
	return done;
}

/* Begin of the last event of which not all slots are in the buffer: how many slots to hold back. */
static uint32_t cut_off(const uint8_t *buffer, uint32_t count)
{
	for (uint32_t back = 1; back <= count; back++) {
		struct events_slot slot;
		uint32_t needed;

		memcpy(&slot, buffer + (size_t)(count - back) * EVENTS_SLOT_BYTES, sizeof(slot));
		if (!(slot.commit & EVENTS_COMMIT_FIRST))
			continue;
		needed = 1 + ((uint32_t)slot.size_bytes + EVENTS_PIECE_BYTES - 1) / EVENTS_PIECE_BYTES;
		return needed > back ? back : 0;
	}
	return 0;
}

static int move_ring(struct drain *drain, unsigned int stream, unsigned int number, bool skip, uint64_t *slots_out)
{
	struct events_ring *ring = &drain->map.rings[stream * drain->map.header.ring_count + number];
	const struct events_slot *slots = events_slots(&drain->map, stream, number);
	const uint32_t ring_slots = drain->map.header.streams[stream].ring_slots, mask = ring_slots - 1;
	uint64_t tail = __atomic_load_n(&ring->tail, __ATOMIC_RELAXED);
	uint64_t head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);

	if (head - tail > ring_slots) /* no program that keeps the rules writes that */
		return -EBADMSG;
	while (tail != head) {
		uint32_t room = head - tail < BUFFER_SLOTS ? (uint32_t)(head - tail) : BUFFER_SLOTS;
		uint32_t count = copy_finished(slots, mask, tail, room, drain->buffer);

		if (!skip)
			count -= cut_off(drain->buffer, count);
		if (!count && !skip)
			break;
		if (count && stream_block_write(drain->outputs[stream], STREAM_BLOCK_SLOTS, number, tail, drain->buffer,
						(size_t)count * EVENTS_SLOT_BYTES, NULL, 0))
			return stream_failure();
		if (fflush(drain->outputs[stream]))
			return stream_failure();
		*slots_out += count;
		if (!count) { /* one that nobody finishes */
			count = 1;
			drain->unfinished[stream * drain->map.header.ring_count + number]++;
		}
		tail += count;
		__atomic_store_n(&ring->tail, tail, __ATOMIC_RELEASE);
	}
	return 0;
}

/* Write the slots of a ring of history that are whole, in runs: the oldest may have been taken over in part. */
static int write_history(struct drain *drain, unsigned int stream, unsigned int number, uint64_t *slots_out)
{
	struct events_ring *ring = &drain->map.rings[stream * drain->map.header.ring_count + number];
	const struct events_slot *slots = events_slots(&drain->map, stream, number);
	const uint32_t ring_slots = drain->map.header.streams[stream].ring_slots;
	uint64_t head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE), at = ring->tail;

	if (head > at + ring_slots)
		at = head - ring_slots;
	while (at < head) {
		uint32_t room = head - at < BUFFER_SLOTS ? (uint32_t)(head - at) : BUFFER_SLOTS;
		uint32_t count = copy_finished(slots, ring_slots - 1, at, room, drain->buffer);

		if (count && stream_block_write(drain->outputs[stream], STREAM_BLOCK_SLOTS, number, at, drain->buffer,
						(size_t)count * EVENTS_SLOT_BYTES, NULL, 0))
			return stream_failure();
		*slots_out += count;
		at += count ? count : 1;
	}
	ring->tail = head;
	return 0;
}

int drain_history(struct drain *drain, unsigned int stream, const struct stream_trigger *why, uint64_t *slots_out)
{
	int err = 0;

	for (unsigned int ring = 0; !err && ring < drain->map.header.ring_count; ring++)
		err = write_history(drain, stream, ring, slots_out);
	if (!err)
		err = stream_block_write(drain->outputs[stream], STREAM_BLOCK_TRIGGER, 0, 0, why, sizeof(*why), NULL, 0);
	if (!err && fflush(drain->outputs[stream]))
		err = stream_failure();
	return err;
}

int drain_move(struct drain *drain, bool skip, uint64_t *slots_out)
{
	int err = 0;

	for (unsigned int stream = 0; !err && stream < drain->map.header.stream_count; stream++)
		for (unsigned int ring = 0; !err && !drain->map.header.streams[stream].history && ring < drain->map.header.ring_count; ring++)
			err = move_ring(drain, stream, ring, skip, slots_out);
	return err;
}

uint64_t drain_now_ticks(uint32_t counter_kind)
{
	return counter_kind == PORT_COUNTER_NONE ? port_events_clock_ns() : port_counter_read();
}

/* Read a clock between two readings of the counter, the closest of several. */
static struct stream_clock read_clock(const struct drain *drain, enum port_kernel_clock clock)
{
	struct stream_clock best = { .clock = clock };

	for (int i = 0; i < CLOCK_READS; i++) {
		uint64_t before = drain_now_ticks(drain->map.header.counter_kind);
		int64_t clock_ns = port_kernel_clock_now_ns(clock);
		uint64_t after = drain_now_ticks(drain->map.header.counter_kind);

		if (!i || after - before < best.after_ticks - best.before_ticks) {
			best.before_ticks = before;
			best.clock_ns = clock_ns;
			best.after_ticks = after;
		}
	}
	return best;
}

int drain_clocks(struct drain *drain)
{
	static const enum port_kernel_clock clocks[] = { PORT_KERNEL_REALTIME, PORT_KERNEL_MONOTONIC, PORT_KERNEL_MONOTONIC_RAW };
	const uint32_t kind = drain->map.header.counter_kind;
	struct port_tai tai;

	if (kind != PORT_COUNTER_NONE && kind != port_counter_kind())
		return 0; /* a program under emulation counts otherwise: nobody here can say when that was */
	port_tai_init(&tai, 0);
	for (size_t i = 0; i < sizeof(clocks) / sizeof(*clocks); i++) {
		struct stream_clock reading;

		if (port_kernel_clock_check(clocks[i]))
			continue;
		reading = read_clock(drain, clocks[i]);
		reading.tai_utc_s = tai.kernel_tai_utc_s;
		for (unsigned int stream = 0; stream < drain->map.header.stream_count; stream++)
			if (stream_block_write(drain->outputs[stream], STREAM_BLOCK_CLOCK, 0, 0, &reading, sizeof(reading), NULL, 0))
				return stream_failure();
	}
	return 0;
}

static int write_states(struct drain *drain, unsigned int stream)
{
	const struct events_map *map = &drain->map;

	for (uint32_t point = 0; point < map->header.point_count; point++) {
		const struct bw_point_description *description = &map->descriptions[point];
		const struct events_state *state = &map->states[stream * map->header.point_count + point];
		size_t cells = description->kind == BW_POINT_HISTOGRAM ? description->buckets + 2 : 0;

		if (description->kind != BW_POINT_COUNTER && description->kind != BW_POINT_HISTOGRAM)
			continue;
		if (stream_block_write(drain->outputs[stream], STREAM_BLOCK_STATE, point, 0, state, sizeof(*state),
				       cells ? map->base + state->cells : NULL, cells * sizeof(uint64_t)))
			return stream_failure();
	}
	return 0;
}

int drain_end(struct drain *drain, uint64_t *lost_out, uint64_t *unfinished_out)
{
	const struct events_map *map = &drain->map;

	for (unsigned int stream = 0; stream < map->header.stream_count; stream++) {
		if (write_states(drain, stream))
			return stream_failure();
		for (unsigned int ring = 0; ring < map->header.ring_count; ring++) {
			const struct events_ring *at = &map->rings[stream * map->header.ring_count + ring];
			struct stream_end end = {
				__atomic_load_n(&at->tail, __ATOMIC_RELAXED), __atomic_load_n(&at->lost, __ATOMIC_RELAXED),
				drain->unfinished[stream * map->header.ring_count + ring],
			};

			*lost_out += end.lost;
			*unfinished_out += end.unfinished;
			if (stream_block_write(drain->outputs[stream], STREAM_BLOCK_END, ring, 0, &end, sizeof(end), NULL, 0))
				return stream_failure();
		}
		if (fflush(drain->outputs[stream]))
			return stream_failure();
	}
	return 0;
}

void drain_close(struct drain *drain, bool keep)
{
	for (unsigned int stream = 0; stream < drain->map.header.stream_count; stream++)
		fclose(drain->outputs[stream]);
	free(drain->unfinished);
	free(drain->buffer);
	if (keep)
		port_events_close(&drain->file);
	else
		port_events_close_removed(&drain->file, drain->path);
}
