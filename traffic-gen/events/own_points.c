/* SPDX-License-Identifier: Apache-2.0 */
/* The points that are compiled into this program or library: joined to a recording before main begins. And those of other languages. */
#include <errno.h>
#include <stdlib.h>

#include "events/session.h"

/* Here, so that a program with a point in it brings what joins it to a recording, too. */
const uint8_t bw_events_off = 0;

/* Kept until the process ends: a thread may be in a point when main returns. */
static struct bw_events own_events;

static int open_own(const char *folder, struct bw_point *first, struct bw_point *end)
{
	uint32_t count = (uint32_t)(end - first);
	struct bw_point **points = calloc(count, sizeof(*points));
	const struct bw_point_description **descriptions = calloc(count, sizeof(*descriptions));
	char program[EVENTS_NAME_BYTES];
	int err = points && descriptions ? port_events_program(program, sizeof(program)) : -ENOMEM;

	for (uint32_t i = 0; !err && i < count; i++) {
		points[i] = &first[i];
		descriptions[i] = first[i].description;
	}
	if (!err)
		err = session_open(folder, program, descriptions, count, &own_events);
	if (!err)
		session_attach(&own_events, points, count);
	free(points);
	free(descriptions);
	return err;
}

__attribute__((constructor)) static void open_at_start(void)
{
	const char *folder = port_events_folder();
	struct bw_point *first, *end;
	int err;

	port_events_points(&first, &end);
	if (!folder || first == end)
		return;
	err = open_own(folder, first, end);
	if (err && err != -ENOENT) /* without a recording there: it has ended, and the environment has not */
		port_events_complain(folder, err);
}

static int open_given(const char *folder, const char *program, const struct bw_point_description *given, size_t count,
		      struct bw_point *points, struct bw_events *events)
{
	const struct bw_point_description **descriptions = calloc(count, sizeof(*descriptions));
	struct bw_point **all = calloc(count, sizeof(*all));
	int err = descriptions && all ? 0 : -ENOMEM;

	for (size_t i = 0; !err && i < count; i++) {
		all[i] = &points[i];
		descriptions[i] = &given[i];
	}
	if (!err)
		err = session_open(folder, program, descriptions, (uint32_t)count, events);
	if (!err)
		session_attach(events, all, (uint32_t)count);
	free(descriptions);
	free(all);
	return err;
}

int bw_events_open(const char *program, const struct bw_point_description *descriptions, size_t count, struct bw_point *points,
		   struct bw_events **events_out)
{
	const char *folder = port_events_folder();
	struct bw_events *events;
	int err;

	*events_out = NULL;
	if (!count || count > EVENTS_POINTS_MAX)
		return -EINVAL;
	for (size_t i = 0; i < count; i++)
		points[i] = (struct bw_point){ &bw_events_off, &descriptions[i], NULL, 0 };
	if (!folder)
		return -ENOENT;
	events = calloc(1, sizeof(*events));
	if (!events)
		return -ENOMEM;
	err = open_given(folder, program, descriptions, count, points, events);
	if (err)
		free(events);
	else
		*events_out = events;
	return err;
}

void bw_events_close(struct bw_events *events, struct bw_point *points, size_t count)
{
	if (!events)
		return;
	for (size_t i = 0; i < count; i++)
		points[i].on = &bw_events_off;
	port_events_close(&events->file);
	port_events_close(&events->control_file);
	free(events);
}
