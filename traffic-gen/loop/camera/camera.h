/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The video machine of "Distributed control loops on Linux", 3.4.1: a thread captures pictures, one sends them, one receives commands
 * and one tells the motor. The files: camera.c, capture.c, server.c, motor.c.
 */
#ifndef BW_LOOP_CAMERA_H
#define BW_LOOP_CAMERA_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "loop/begun.h"
#include "loop/camera/mount.h"
#include "loop/camera/scene.h"
#include "loop/camera/truth.h"
#include "loop/picture_queue.h"
#include "loop/refusals.h"
#include "loop/stream.h"
#include "port/port_video.h"
#include "time/stepwatch.h"
#include "traffic/roundtrip/side.h"

enum { ORDERS = 1024 /* commands on their way to the motor */, REFUSED_MAX = 1000 /* commands; then the tracker floods */ };

/* The camera's start, by each clock. */
struct camera_start {
	int64_t monotonic_ns, realtime_ns, tai_ns;
	int64_t bound_ns; /* all three are of one instant, but for this */
};

struct camera {
	struct side side; /* its options, its clock; no socket */
	struct scene scene;
	int64_t period_ns, motor_delay_ns, timeout_ns;
	uint32_t pictures;
	const char *v4l2; /* a real camera's device; NULL: the synthetic one */
	struct port_video *video;
	struct port_video_found device;
	bool is_open, is_reversed, waits_for_client, has_commands;

	char congestion[PORT_CONGESTION_BYTES]; /* of the connection that carries pictures; empty: nobody says */
	port_socket picture_listener, command_listener;
	atomic_bool has_client, has_commander; /* somebody has connected */
	atomic_bool has_started, is_all_captured, has_failed, motor_is_over;
	atomic_int running; /* threads */
	struct camera_start start; /* valid once has_started */
	_Atomic uint32_t captured; /* pictures */
	struct picture_queue queue;
	struct begun begun; /* pictures that the client gets */
	struct truth truth;

	struct port_lock *mount_lock; /* of mount, and of is_stopped */
	struct mount mount;
	bool is_stopped; /* the tracker's connection has ended: it keeps its pose */

	/* Of capture. */
	uint64_t missed; /* periods */
	struct stepwatch watch;
	const char *capture_failed;
	int video_error;
	bool is_stamped_ahead; /* a driver stamped a picture later than it gave it */
	/* Of the server. */
	struct loop_stream client;
	uint64_t sent, discarded, unsent;
	const char *server_failed;
	int server_error;
	/* Of the receiver. */
	struct loop_stream commander;
	uint64_t received; /* commands, the refused ones among them */
	bool has_answered;
	uint32_t last_answered; /* the last picture that a command has answered */
	struct refusals refused;
	struct ring orders; /* to the motor */
	struct port_bell *bell;
	const char *receiver_failed;
	/* Of the motor. */
	uint64_t obeyed, ignored, dropped, clamped;
};

/* A command on its way to the motor. */
struct order {
	uint64_t number;
	int64_t came_ns;
	struct loop_command command;
};

/** Time since the camera's start; before it 0. */
static inline int64_t camera_now_ns(const struct camera *camera)
{
	return atomic_load(&camera->has_started) ? port_clock_now_ns(PORT_CLOCK_MONOTONIC) - camera->start.monotonic_ns : 0;
}

/* The threads; of each the argument is the camera. */
void camera_capture(void *camera);
void camera_serve(void *camera);
void camera_receive(void *camera);
void camera_motor(void *camera);

#endif
