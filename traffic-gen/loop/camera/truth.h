/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The truth file: what the camera alone knows, to be read after the run. Threads leave what they know in rings of their own, and
 * one that is in no hurry writes it.
 */
#ifndef BW_LOOP_TRUTH_H
#define BW_LOOP_TRUTH_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/json.h"
#include "base/ring.h"
#include "loop/camera/command.h"
#include "loop/camera/pose.h"
#include "port/port_connection.h"

/* Times are since the camera's start. */
struct truth_picture {
	uint32_t number;
	int64_t captured_ns;
	struct pose pose;
	bool is_queued;
};

struct truth_command {
	uint64_t number;         /* of those that came, from 0 */
	int64_t came_ns;
	struct loop_command command;  /* where refused is NULL */
	const char *refused;     /* a reason, or NULL */
	bool is_obeyed;
	int64_t motor_ns;        /* when the motor was told; of those that are obeyed */
	struct pose from, goal;  /* likewise: where it was then, where it goes */
	unsigned int clamped;    /* MOUNT_CLAMPED_… */
};

/* The connection of the pictures, once one was sent. */
struct truth_connection {
	uint32_t number; /* of the picture */
	int64_t t_ns;
	struct port_connection connection;
};

struct truth {
	FILE *file; /* NULL: nobody wants it */
	struct json json;
	struct ring pictures, connections, obeyed, refused; /* of the threads capture, server, motor, receiver */
	bool has_failed;                                    /* a line could not be written */
};

/** @param path  NULL: nothing is written @return 0 or -errno; truth_close is allowed in either case */
int truth_open(struct truth *truth, const char *path);
void truth_picture(struct truth *truth, const struct truth_picture *picture);
void truth_connection(struct truth *truth, const struct truth_connection *connection);
void truth_obeyed(struct truth *truth, const struct truth_command *command);
void truth_refused(struct truth *truth, const struct truth_command *command);
/** Write what has come so far. */
void truth_write(struct truth *truth);
/** Lines that it lacks. */
uint64_t truth_lacks(const struct truth *truth);
/** Close the file. */
void truth_close(struct truth *truth);

#endif
