/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processing machine of "Distributed control loops on Linux", 3.4.2: pictures in, commands back to the camera, pictures on to a
 * display. The files: tracker.c, tracking.c, program.c, forward.c.
 */
#ifndef BW_LOOP_TRACKING_H
#define BW_LOOP_TRACKING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "loop/begun.h"
#include "loop/camera/command.h"
#include "loop/picture_queue.h"
#include "loop/refusals.h"
#include "loop/stream.h"
#include "loop/tracker/track.h"
#include "port/port_child.h"
#include "traffic/roundtrip/side.h"

enum { PROGRAM_FAILED_BYTES = 128, PROGRAM_BYTES_A_PICTURE = 2048 /* of a program's stdout; what says more floods */ };

/* Pictures on to a display, by a thread that holds up nobody. */
struct forwarder {
	bool is_wanted, has_queue, is_lost;
	struct address peer;
	int64_t timeout_ns;
	struct picture_queue queue;
	struct port_thread *thread;
	struct loop_stream stream;
	int64_t next_attempt_monotonic_ns;
	uint64_t forwarded, discarded;
	bool has_end; /* set before the queue ends */
	uint8_t end[PICTURE_HEADER_BYTES];
};

/* A tracker of the site's own. */
struct program {
	char *const *argv; /* NULL: there is none */
	struct port_child child;
	struct port_thread *thread; /* reads what it says */
	struct loop_stream in, out;
	int64_t timeout_ns;
	_Atomic uint32_t given;         /* pictures */
	_Atomic uint32_t beyond;        /* the number behind the last of them */
	struct begun begun;             /* they */
	atomic_bool has_closed_stdin;   /* of its own */
	atomic_bool is_closing, is_given_up, is_over; /* its stdin is closed; it is not waited for; its thread has ended */
	atomic_bool has_looked;
	_Atomic int32_t x_q8, y_q8;     /* where it last said to look */
	bool has_answered;
	uint32_t last_answered; /* the last picture that a line has answered */
	uint64_t said_bytes;
	struct refusals refused;        /* lines */
	char failed[PROGRAM_FAILED_BYTES]; /* empty: it did not */
};

struct tracking {
	struct side side;
	struct address camera_peer, control_peer;
	int64_t timeout_ns, margin_percent;
	bool is_edge; /* commands near an edge alone */
	int32_t radius_px;
	struct loop_stream camera, control;
	struct picture_reader reader;
	struct tracker tracker;
	bool has_tracker;
	struct program program;
	struct forwarder forwarder;
	uint64_t pictures, found, not_found, commands;
	struct refusals damaged;
	bool has_ended;
	uint32_t of; /* how many the camera has captured, by the end of the stream */
	const char *failed;
	int error;
};

/** Track until the end of the pictures; the argument is a struct tracking. */
void tracking_run(void *tracking);
/** Note why it came to no end, if nothing is noted yet. */
void tracking_fail(struct tracking *tracking, const char *why, int err);
/** Record that it is known where the target of a picture is, or that it is not. */
void tracking_tracked(uint32_t number);
/** Send a command. @return whether it was */
bool tracking_command(struct tracking *tracking, const struct loop_command *command);

/** Start the program of program.argv. @return 0 or -errno */
int program_start(struct tracking *tracking);
/** Read what it says, and send it on, by a thread of its own. @return 0 or -errno */
int program_listen(struct tracking *tracking);
/** Give it a picture. @return whether it took it */
bool program_give(struct tracking *tracking, uint32_t number, const uint8_t *wire, size_t size_bytes);
/** It gets no picture any more: wait for its end, or make one. */
void program_end(struct tracking *tracking);

/** Hand a picture over; the display may be there or not. */
void forward_picture(struct forwarder *forwarder, const uint8_t *wire, size_t size_bytes, size_t largest_bytes);
/** No picture comes any more. @param end  the header of the stream's end; NULL: it has none */
void forward_end(struct forwarder *forwarder, const uint8_t *end);

#endif
