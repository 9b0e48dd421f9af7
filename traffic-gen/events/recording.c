/* SPDX-License-Identifier: Apache-2.0 */
#include "events/recording.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/time_units.h"
#include "events/session.h"
#include "port/port.h"
#include "port/port_clock.h"

#define REST ".rest"

enum { NUMBERS_TRIED = 100000, FOLDERS_TRIED = 100 };

/* Until it has its control, whoever saves what was killed may take the folder for one of those: -ENOENT. */
static int make_control(struct recording *recording, const struct events_control *control, const char *output)
{
	char made[PORT_EVENTS_PATH_BYTES];
	struct events_control *own;
	int err = port_events_make_folder(recording->folder);

	if (err)
		return err;
	snprintf(recording->output, sizeof(recording->output), "%s", output);
	err = port_events_create(recording->folder, sizeof(*own), &recording->control_file, made);
	if (err) {
		port_events_remove_folder(recording->folder);
		return err;
	}
	own = recording->control = recording->control_file.address;
	*own = *control;
	memcpy(own->magic, EVENTS_CONTROL_MAGIC, sizeof(own->magic));
	own->byte_order = EVENTS_BYTE_ORDER;
	own->pid = port_events_pid();
	snprintf(own->output, sizeof(own->output), "%s", output);
	err = port_events_publish(recording->folder, "control", made);
	if (err) {
		port_events_close(&recording->control_file);
		port_events_remove_folder(recording->folder);
	}
	return err;
}

int recording_open(struct recording *recording, const struct events_control *control, const char *output)
{
	int err = -ENOENT;

	for (int i = 0; err == -ENOENT && i < FOLDERS_TRIED; i++)
		err = make_control(recording, control, output);
	return err;
}

static bool is_known(const struct recording *recording, const char *path)
{
	for (int i = 0; i < recording->drain_count; i++)
		if (!strcmp(recording->drains[i].path, path))
			return true;
	return false;
}

/*
 * Open a file of rings whose streams' files are there already, under a number that is free: in containers, and where a program takes
 * the place of another, one number of a process comes again.
 */
static int open_renumbered(struct drain *drain, const struct recording *recording, const char *path)
{
	int length = (int)(strlen(path) - strlen(EVENTS_RINGS_SUFFIX)), err = -EEXIST;
	char old[PORT_EVENTS_PATH_BYTES], renumbered[PORT_EVENTS_PATH_BYTES];

	snprintf(old, sizeof(old), "%s", path);
	while (length > 0 && path[length - 1] != '.') /* the number behind that of the process */
		length--;
	for (int i = 1; err == -EEXIST && i < NUMBERS_TRIED; i++) {
		if (snprintf(renumbered, sizeof(renumbered), "%.*s%d" EVENTS_RINGS_SUFFIX, length, path, i) >= (int)sizeof(renumbered))
			return -ENAMETOOLONG;
		if (port_events_publish(recording->folder, renumbered + strlen(recording->folder) + 1, old))
			continue;
		err = drain_open(drain, renumbered, recording->output, "");
		snprintf(old, sizeof(old), "%s", renumbered);
	}
	return err;
}

/* At the begin of a program and at its end: names may be added and taken away meanwhile. */
static void note_wanted(struct recording *recording, const struct events_map *map)
{
	for (uint32_t stream = 0; stream < recording->control->stream_count; stream++)
		recording->wanted[stream] |= session_is_wanted(map, recording->control, stream);
}

/* A new program's file of rings. What is wrong with it is said, once, and it is taken away. */
static int add_rings(struct recording *recording, const char *path, const char *suffix)
{
	struct drain *drain;
	int err;

	if (recording->drain_count == recording->drain_room) {
		int room = recording->drain_room ? 2 * recording->drain_room : 16;
		struct drain *more = realloc(recording->drains, (size_t)room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		recording->drains = more;
		recording->drain_room = room;
	}
	drain = &recording->drains[recording->drain_count];
	err = drain_open(drain, path, recording->output, suffix);
	if (err == -EEXIST && !*suffix)
		err = open_renumbered(drain, recording, path);
	/* The rest of a rest that could not be saved whole. */
	for (int i = 2; err == -EEXIST && *suffix && i < NUMBERS_TRIED; i++) {
		char numbered[sizeof(REST) + 16];

		snprintf(numbered, sizeof(numbered), "%s%d", suffix, i);
		err = drain_open(drain, path, recording->output, numbered);
	}
	if (err == -EBADMSG || err == -EXDEV || err == -EPERM || err == -EEXIST) {
		fprintf(stderr, "bw-events: %s: %s: left out\n", path, err == -EEXIST ? "its streams' files are there already" : "damaged");
		recording->refused++;
		port_events_remove(path);
		return 0;
	}
	if (err == -EMFILE || err == -ENFILE) { /* their rings keep what they record until others have ended */
		recording->waiting++;
		return 0;
	}
	if (err)
		return err;
	recording->drain_count++;
	recording->programs++;
	note_wanted(recording, &drain->map);
	return drain_clocks(drain);
}

static bool is_rings(const char *name)
{
	size_t length = strlen(name), end = strlen(EVENTS_RINGS_SUFFIX);

	return name[0] != '.' && length > end && !strcmp(name + length - end, EVENTS_RINGS_SUFFIX);
}

struct finder {
	struct recording *recording;
	const char *suffix;
};

static int found(void *sink, const char *name)
{
	const struct finder *finder = sink;
	char path[PORT_EVENTS_PATH_BYTES];

	if (!is_rings(name))
		return 0;
	if (snprintf(path, sizeof(path), "%s/%s", finder->recording->folder, name) >= (int)sizeof(path))
		return 0;
	return is_known(finder->recording, path) ? 0 : add_rings(finder->recording, path, finder->suffix);
}

static void turn_off(const struct events_map *map)
{
	for (uint32_t point = 0; point < map->header.point_count; point++)
		__atomic_store_n(&map->wanted[point], 0, __ATOMIC_RELAXED);
}

static bool is_history(const struct drain *drain, unsigned int stream)
{
	return stream < drain->map.header.stream_count && drain->map.header.streams[stream].history;
}

/* Why a history is written. */
static struct stream_trigger why_triggered(const struct events_control *control, unsigned int stream)
{
	uint64_t ticks = __atomic_load_n(&control->streams[stream].triggered_ticks, __ATOMIC_ACQUIRE);

	if (!ticks)
		return (struct stream_trigger){ 0, 0, STREAM_CAUSE_END, 0 };
	if (__atomic_load_n(&control->streams[stream].commanded, __ATOMIC_ACQUIRE))
		return (struct stream_trigger){ ticks, 0, STREAM_CAUSE_COMMAND, 0 };
	return (struct stream_trigger){ ticks, control->streams[stream].triggered_tag, STREAM_CAUSE_EVENT, 0 };
}

/* What a program that ends, or a recording, leaves in the rings of its histories. */
static int write_last_histories(struct recording *recording, struct drain *drain)
{
	const struct events_control *control = recording->control;
	int err = 0;

	for (unsigned int stream = 0; !err && stream < control->stream_count; stream++) {
		struct stream_trigger why = why_triggered(control, stream);

		if (!is_history(drain, stream) || (why.cause == STREAM_CAUSE_END && !control->streams[stream].at_end))
			continue;
		err = drain_history(drain, stream, &why, &recording->slots);
		recording->triggers++;
	}
	return err;
}

static int end_drain(struct recording *recording, int number)
{
	struct drain *drain = &recording->drains[number];
	int err = drain_clocks(drain);

	note_wanted(recording, &drain->map);
	if (!err)
		err = write_last_histories(recording, drain);
	if (!err)
		err = drain_end(drain, &recording->lost, &recording->unfinished);
	if (err)
		return err;
	drain_close(drain, false);
	recording->drains[number] = recording->drains[--recording->drain_count];
	return 0;
}

static int collect_all(struct recording *recording, bool last, uint64_t *moved_out)
{
	int err = 0;

	for (int i = recording->drain_count - 1; !err && i >= 0; i--) {
		struct drain *drain = &recording->drains[i];
		/* Asked first: what it wrote before it ended is in the rings then. */
		bool over = !port_events_is_held(&drain->file, drain->map.header.pid);

		if (last)
			turn_off(&drain->map);
		err = drain_move(drain, over || last, moved_out);
		if (err == -EBADMSG) {
			fprintf(stderr, "bw-events: %s: damaged while it was recorded: what was whole before is kept\n", drain->path);
			recording->refused++;
			err = 0;
			over = true;
		}
		if (!err && (over || last))
			err = end_drain(recording, i);
	}
	return err;
}

int recording_collect(struct recording *recording, bool last, uint64_t *moved_out)
{
	struct finder finder = { recording, "" };
	uint64_t moved = 0;
	int err, drains;

	if (last)
		session_end(recording->control);
	do {
		recording->waiting = 0;
		err = port_events_list(recording->folder, found, &finder);
		drains = recording->drain_count;
		if (!err)
			err = collect_all(recording, last, &moved);
	} while (!err && last && recording->waiting && drains); /* who is collected to the end makes room */
	if (!err && last && recording->waiting)
		err = -EMFILE;
	recording->slots += moved;
	if (moved_out)
		*moved_out = moved;
	return err;
}

void recording_trigger(struct events_control *control)
{
	const uint64_t now_ticks = drain_now_ticks(port_counter_kind());

	for (uint32_t stream = 0; stream < control->stream_count; stream++) {
		uint64_t none = 0;

		if (control->streams[stream].history &&
		    __atomic_compare_exchange_n(&control->streams[stream].triggered_ticks, &none, now_ticks, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
			__atomic_store_n(&control->streams[stream].commanded, 1, __ATOMIC_RELEASE);
	}
}

/* Nobody records into a history while it is written; then it begins anew. */
static int write_one_history(struct recording *recording, uint32_t stream)
{
	struct events_control *control = recording->control;
	struct stream_trigger why = why_triggered(control, stream);
	int err = 0;

	for (int i = 0; i < recording->drain_count; i++)
		for (uint32_t point = 0; is_history(&recording->drains[i], stream) && point < recording->drains[i].map.header.point_count; point++)
			__atomic_fetch_and(&recording->drains[i].map.wanted[point], (uint8_t)~(1U << stream), __ATOMIC_RELAXED);
	port_sleep_ns(NS_PER_MS); /* who was in the middle of an event has finished it */
	for (int i = 0; !err && i < recording->drain_count; i++)
		if (is_history(&recording->drains[i], stream))
			err = drain_history(&recording->drains[i], stream, &why, &recording->slots);
	__atomic_store_n(&control->streams[stream].commanded, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&control->streams[stream].triggered_ticks, 0, __ATOMIC_RELEASE);
	for (int i = 0; i < recording->drain_count; i++)
		session_set_wanted(&recording->drains[i].map, control);
	recording->triggers++;
	return err;
}

int recording_histories(struct recording *recording, int64_t now_monotonic_ns)
{
	struct events_control *control = recording->control;
	int err = 0;

	for (uint32_t stream = 0; !err && stream < control->stream_count; stream++) {
		int64_t *due = &recording->due_monotonic_ns[stream];

		if (!__atomic_load_n(&control->streams[stream].triggered_ticks, __ATOMIC_ACQUIRE))
			continue;
		if (!*due)
			*due = now_monotonic_ns + control->streams[stream].after_ms * NS_PER_MS;
		if (now_monotonic_ns < *due)
			continue;
		err = write_one_history(recording, stream);
		*due = 0;
	}
	return err;
}

int recording_clocks(struct recording *recording)
{
	int err = 0;

	for (int i = 0; !err && i < recording->drain_count; i++)
		err = drain_clocks(&recording->drains[i]);
	return err;
}

struct walk {
	const char *folder;
	each_rings *each;
	void *sink;
};

static int walk_one(void *sink, const char *name)
{
	const struct walk *walk = sink;
	char path[PORT_EVENTS_PATH_BYTES];
	struct port_events_file file;
	struct events_map map;

	if (!is_rings(name) || snprintf(path, sizeof(path), "%s/%s", walk->folder, name) >= (int)sizeof(path) || port_events_open(path, &file))
		return 0;
	if (!events_map_check(file.address, file.size_bytes, &map))
		walk->each(walk->sink, &map);
	port_events_close(&file);
	return 0;
}

void recording_each(const char *folder, each_rings *each, void *sink)
{
	struct walk walk = { folder, each, sink };

	port_events_list(folder, walk_one, &walk);
}

/* Of a program whose rings were not opened yet, too. */
static void abandon_one(void *sink, const struct events_map *map)
{
	struct recording *recording = sink;

	turn_off(map);
	for (uint32_t ring = 0; ring < map->header.stream_count * map->header.ring_count; ring++) {
		recording->lost += __atomic_load_n(&map->rings[ring].lost, __ATOMIC_RELAXED);
		recording->uncollected +=
			__atomic_load_n(&map->rings[ring].head, __ATOMIC_RELAXED) - __atomic_load_n(&map->rings[ring].tail, __ATOMIC_RELAXED);
	}
}

void recording_abandon(struct recording *recording)
{
	session_end(recording->control);
	recording_each(recording->folder, abandon_one, recording);
}

static int remove_file(void *sink, const char *name)
{
	char path[2 * PORT_EVENTS_PATH_BYTES];

	snprintf(path, sizeof(path), "%s/%s", (const char *)sink, name);
	port_events_remove(path);
	return 0;
}

/* New names may come while the folder is read: once more. */
static void remove_all(char *folder)
{
	for (int i = 0; i < 3 && port_events_remove_folder(folder); i++)
		port_events_list(folder, remove_file, folder);
}

void recording_close(struct recording *recording)
{
	char path[2 * PORT_EVENTS_PATH_BYTES];

	while (recording->drain_count)
		drain_close(&recording->drains[--recording->drain_count], false);
	free(recording->drains);
	snprintf(path, sizeof(path), "%s/control", recording->folder);
	port_events_close_removed(&recording->control_file, path);
	remove_all(recording->folder);
}

struct saver {
	const char *folder, *prefix;
	FILE *told;
};

/* Of a folder without a control: its recorder was killed before it was there, or while the folder was removed, or is about to make it. */
static int is_unheld(void *sink, const char *name)
{
	char path[2 * PORT_EVENTS_PATH_BYTES];
	struct port_events_file file;
	bool held;

	snprintf(path, sizeof(path), "%s/%s", (const char *)sink, name);
	if (port_events_open(path, &file))
		return 0;
	held = port_events_is_held(&file, 0);
	port_events_close(&file);
	return held ? -EBUSY : 0;
}

/* Close, for another one that tries it again. */
static void leave(struct recording *recording)
{
	while (recording->drain_count) {
		turn_off(&recording->drains[--recording->drain_count].map);
		drain_close(&recording->drains[recording->drain_count], true);
	}
	free(recording->drains);
	port_events_close(&recording->control_file);
}

static int save_one(void *sink, const char *name)
{
	const struct saver *saver = sink;
	struct recording killed = { .programs = 0 };
	struct finder finder = { &killed, REST };
	uint64_t moved = 0;
	int err;

	if (strncmp(name, saver->prefix, strlen(saver->prefix)) != 0)
		return 0;
	if (snprintf(killed.folder, sizeof(killed.folder), "%s/%s", saver->folder, name) >= (int)sizeof(killed.folder) ||
	    !port_events_is_own_folder(killed.folder)) /* what others wrote says nothing about where this user's files go */
		return 0;
	err = session_control(killed.folder, &killed.control_file, &killed.control);
	if (err) {
		if (err == -ENOENT && !port_events_list(killed.folder, is_unheld, killed.folder))
			remove_all(killed.folder);
		return 0;
	}
	if (port_events_is_held(&killed.control_file, 0)) {
		port_events_close(&killed.control_file);
		return 0;
	}
	killed.control->output[EVENTS_OUTPUT_BYTES - 1] = 0;
	snprintf(killed.output, sizeof(killed.output), "%s", killed.control->output);
	session_end(killed.control);
	err = port_events_list(killed.folder, found, &finder);
	if (!err)
		err = collect_all(&killed, true, &moved);
	if (err && err != -ENOENT) {
		fprintf(saver->told, "bw-events: a recording was killed, and the rest of it cannot be saved in %s: %s; it stays in %s until it can be\n",
			killed.output, strerror(-err), killed.folder);
		leave(&killed);
		return 0;
	}
	if (err)
		fprintf(saver->told, "bw-events: a recording was killed; the rest of it is thrown away: its folder %s has gone\n", killed.output);
	else
		fprintf(saver->told, "bw-events: a recording was killed: the rest of it, %llu slots of %d programs, is in %s as *" REST "*" STREAM_FILE_SUFFIX "\n",
			(unsigned long long)moved, killed.programs, killed.output);
	recording_close(&killed);
	return 0;
}

void recording_save_killed(FILE *told)
{
	struct saver saver = { .told = told };

	port_events_places(&saver.folder, &saver.prefix);
	port_events_list(saver.folder, save_one, &saver);
}
