/* SPDX-License-Identifier: Apache-2.0 */
/* A program's own file of rings. */
#ifndef BW_EVENTS_SESSION_H
#define BW_EVENTS_SESSION_H

#include "events/layout.h"
#include "port/port_events.h"

struct bw_events {
	struct events_map map;
	struct port_events_file file, control_file;
	struct events_control *control;
};

/**
 * Open a file of rings for the points of a program.
 *
 * @param folder   of the recording
 * @param program  its name there
 * @return 0; -ENOENT: there is no recording, or it has ended; -EINVAL: a description is wrong, or two points of one group have the same name; -EBADMSG, -EXDEV: `control` is damaged or
 *         of another byte order; or -errno
 */
int session_open(const char *folder, const char *program, const struct bw_point_description *const *descriptions, uint32_t count,
		 struct bw_events *events);
/** Join points to what they record into: from here on they may be on. */
void session_attach(struct bw_events *events, struct bw_point *const *points, uint32_t count);

/** Map `control` of a recording and check it. @return 0; -EBADMSG; -EXDEV; or -errno */
int session_control(const char *folder, struct port_events_file *file, struct events_control **control_out);
/** From now on no program joins: what has joined can be found in the folder, and no other one turns its points on. */
void session_end(struct events_control *control);
/** Set what each point does by the streams' lists, triggers and filters. Called by the program, and by who changes the lists. */
void session_set_wanted(const struct events_map *map, struct events_control *control);
/** @return true if a program has a point that a stream wants */
bool session_is_wanted(const struct events_map *map, struct events_control *control, uint32_t stream);

#endif
