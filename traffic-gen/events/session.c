/* SPDX-License-Identifier: Apache-2.0 */
#include "events/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "port/port_clock.h"

enum { NAMES_TRIED = 1000, READS_TRIED = 1000 };

static int control_check(const struct events_control *control, size_t size_bytes)
{
	if (size_bytes < sizeof(*control) || memcmp(control->magic, EVENTS_CONTROL_MAGIC, sizeof(control->magic)) != 0)
		return -EBADMSG;
	if (control->byte_order == __builtin_bswap32(EVENTS_BYTE_ORDER))
		return -EXDEV;
	if (control->byte_order != EVENTS_BYTE_ORDER || !control->stream_count || control->stream_count > EVENTS_STREAMS_MAX)
		return -EBADMSG;
	return 0;
}

int session_control(const char *folder, struct port_events_file *file, struct events_control **control_out)
{
	char path[PORT_EVENTS_PATH_BYTES];
	struct events_control *control;
	int err;

	if (snprintf(path, sizeof(path), "%s/control", folder) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	err = port_events_open(path, file);
	if (err)
		return err;
	control = file->address;
	err = control_check(control, file->size_bytes);
	if (err)
		port_events_close(file);
	else
		*control_out = control;
	return err;
}

static bool has_ended(struct events_control *control)
{
	return __atomic_load_n(&control->ended, __ATOMIC_SEQ_CST);
}

void session_end(struct events_control *control)
{
	__atomic_exchange_n(&control->ended, 1, __ATOMIC_SEQ_CST);
}

/* Copy a stream's list, whole, while somebody may be writing it. */
static void read_wanted(struct events_control *control, uint32_t stream, char *wanted)
{
	for (int i = 0; i < READS_TRIED; i++) {
		uint32_t before = __atomic_load_n(&control->generation, __ATOMIC_ACQUIRE);

		memcpy(wanted, control->streams[stream].wanted, EVENTS_WANTED_BYTES);
		wanted[EVENTS_WANTED_BYTES - 1] = 0;
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (!(before & 1) && before == __atomic_load_n(&control->generation, __ATOMIC_RELAXED))
			return;
	}
}

static void set_filters(const struct events_map *map, const struct events_control *control)
{
	uint32_t count = control->filter_count < EVENTS_FILTERS_MAX ? control->filter_count : EVENTS_FILTERS_MAX;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t stream = control->filters[i].stream;

		for (uint32_t point = 0; stream < map->header.stream_count && point < map->header.point_count; point++) {
			struct events_state *state = &map->states[stream * map->header.point_count + point];

			if (!events_wanted(control->filters[i].points, &map->descriptions[point]))
				continue;
			state->min = control->filters[i].min;
			state->max = control->filters[i].max;
			state->every = control->filters[i].every;
		}
	}
}

static void set_wanted(const struct events_map *map, struct events_control *control)
{
	uint8_t bits[EVENTS_POINTS_MAX] = { 0 }, triggers[EVENTS_POINTS_MAX] = { 0 };
	uint32_t streams = map->header.stream_count < control->stream_count ? map->header.stream_count : control->stream_count;

	for (uint32_t stream = 0; stream < streams; stream++) {
		char wanted[EVENTS_WANTED_BYTES];

		read_wanted(control, stream, wanted);
		for (uint32_t point = 0; point < map->header.point_count; point++) {
			if (events_wanted(control->streams[stream].triggers, &map->descriptions[point]))
				triggers[point] |= (uint8_t)(1U << stream);
			if (events_wanted(wanted, &map->descriptions[point]))
				bits[point] |= (uint8_t)(1U << stream);
		}
	}
	for (uint32_t point = 0; point < map->header.point_count; point++) {
		map->triggers[point] = triggers[point];
		__atomic_store_n(&map->wanted[point], (uint8_t)(bits[point] | triggers[point]), __ATOMIC_RELAXED);
	}
}

bool session_is_wanted(const struct events_map *map, struct events_control *control, uint32_t stream)
{
	char wanted[EVENTS_WANTED_BYTES];

	read_wanted(control, stream, wanted);
	for (uint32_t point = 0; point < map->header.point_count; point++)
		if (events_wanted(wanted, &map->descriptions[point]))
			return true;
	return false;
}

void session_set_wanted(const struct events_map *map, struct events_control *control)
{
	/* A program that starts may have read lists that have been changed since: what it sets then must not be the last. */
	for (int i = 0; i < READS_TRIED; i++) {
		uint32_t before = __atomic_load_n(&control->generation, __ATOMIC_ACQUIRE);

		set_wanted(map, control);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (before == __atomic_load_n(&control->generation, __ATOMIC_RELAXED))
			return;
	}
}

static void set_program(char *name, const char *program)
{
	size_t length = strlen(program);

	if (length >= EVENTS_NAME_BYTES)
		length = EVENTS_NAME_BYTES - 1;
	for (size_t i = 0; i < length; i++)
		name[i] = strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_", program[i]) ? program[i] : '_';
	name[length] = 0;
	if (!length || name[0] == '.')
		name[0] = '_'; /* names that begin with a dot are of files that are being made */
}

static void set_header(struct events_header *header, const char *program, uint32_t point_count, const struct events_control *control)
{
	uint32_t cpus = port_events_cpus();

	memset(header, 0, sizeof(*header));
	set_program(header->program, program);
	header->pid = port_events_pid();
	header->counter_kind = port_counter_kind();
	header->counter_hz = header->counter_kind == PORT_COUNTER_NONE ? UINT64_C(1000000000) : port_counter_stated_hz();
	header->point_count = point_count;
	header->stream_count = control->stream_count;
	header->ring_count = cpus > EVENTS_RINGS_MAX ? EVENTS_RINGS_MAX : cpus;
	for (uint32_t stream = 0; stream < control->stream_count; stream++) {
		memcpy(header->streams[stream].name, control->streams[stream].name, EVENTS_STREAM_NAME_BYTES);
		header->streams[stream].ring_slots = control->streams[stream].ring_slots;
		header->streams[stream].history = control->streams[stream].history;
	}
}

/* Several libraries of a process, and processes of one number in several namespaces, each get a name of their own. */
static int publish(const char *folder, const struct events_header *header, struct events_control *control, const char *made)
{
	char name[EVENTS_NAME_BYTES + 64], path[PORT_EVENTS_PATH_BYTES + sizeof(name)];
	int err = -EEXIST;

	for (int i = 0; err == -EEXIST && i < NAMES_TRIED; i++) {
		snprintf(name, sizeof(name), "%s.%llu.%d" EVENTS_RINGS_SUFFIX, header->program, (unsigned long long)header->pid, i);
		err = port_events_publish(folder, name, made);
	}
	if (err)
		port_events_remove(made);
	/* Either who ends the recording finds the file when it looks last, or its end is seen here. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (!err && has_ended(control)) {
		snprintf(path, sizeof(path), "%s/%s", folder, name);
		port_events_remove(path);
		err = -ENOENT;
	}
	return err;
}

static int fill(const char *folder, const struct bw_point_description *const *descriptions, struct bw_events *events,
		struct events_control *control, const char *made)
{
	struct events_map *map = &events->map;
	int err;

	/* First all that lies behind the header, whose magic says that it is whole. */
	for (uint32_t i = 0; i < map->header.point_count; i++)
		memcpy((uint8_t *)events->file.address + map->header.descriptions_at + i * sizeof(**descriptions), descriptions[i],
		       sizeof(**descriptions));
	memcpy(events->file.address, &map->header, sizeof(map->header));
	err = events_map_check(events->file.address, events->file.size_bytes, map);
	if (!err)
		err = publish(folder, &map->header, control, made);
	if (!err)
		set_filters(map, control);
	if (!err)
		session_set_wanted(map, control); /* after it can be found: who changes the lists now sees it, or was before */
	return err;
}

static int open_with_control(const char *folder, const char *program, const struct bw_point_description *const *descriptions,
			     uint32_t count, struct bw_events *events, struct events_control *control)
{
	struct bw_point_description *all; /* beside each other, as they are in the file */
	char made[PORT_EVENTS_PATH_BYTES];
	int err;

	if (!count || count > EVENTS_POINTS_MAX)
		return -EINVAL;
	all = calloc(count, sizeof(*all));
	if (!all)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		all[i] = *descriptions[i];
	set_header(&events->map.header, program, count, control);
	err = events_layout(&events->map.header, all);
	if (!err)
		err = events_descriptions_distinct(all, count);
	free(all);
	if (!err)
		err = port_events_create(folder, events->map.header.size_bytes, &events->file, made);
	if (err)
		return err;
	err = fill(folder, descriptions, events, control, made);
	if (err)
		port_events_close(&events->file);
	return err;
}

int session_open(const char *folder, const char *program, const struct bw_point_description *const *descriptions, uint32_t count,
		 struct bw_events *events)
{
	int err;

	memset(events, 0, sizeof(*events));
	err = session_control(folder, &events->control_file, &events->control);
	if (err)
		return err;
	port_events_keep_map(&events->control_file);
	err = has_ended(events->control) ? -ENOENT : open_with_control(folder, program, descriptions, count, events, events->control);
	if (err && err != -ENOENT) {
		__atomic_store_n(&events->control->refused_errno, -err, __ATOMIC_RELAXED);
		__atomic_fetch_add(&events->control->refused, 1, __ATOMIC_RELEASE);
	}
	if (err)
		port_events_close(&events->control_file);
	return err;
}

void session_attach(struct bw_events *events, struct bw_point *const *points, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		points[i]->events = events;
		points[i]->number = i;
	}
	__atomic_thread_fence(__ATOMIC_RELEASE);
	for (uint32_t i = 0; i < count; i++)
		points[i]->on = &events->map.wanted[i];
}
