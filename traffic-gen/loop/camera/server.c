/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that sends pictures to its one client; while there is none it discards them (3.4.1 of the paper). */
#include <errno.h>

#include "base/time_units.h"
#include "events/bwevents.h"
#include "loop/camera/camera.h"

BW_EVENT_POINT(camera_send, "camera", "send", "a picture's first byte is written; tag: its number");
BW_EVENT_POINT(camera_sent, "camera", "sent", "a picture's last byte was written; tag: its number");

static void accept_client(struct camera *camera)
{
	struct address source;
	port_socket sock;

	if (camera->picture_listener == PORT_SOCKET_NONE || port_tcp_accept(camera->picture_listener, &sock, &source))
		return;
	port_socket_close(camera->picture_listener);
	camera->picture_listener = PORT_SOCKET_NONE;
	port_socket_set_nodelay(sock);
	if (stream_open(&camera->client, sock))
		camera->server_failed = "a client could not be served";
	atomic_store(&camera->has_client, true);
}

static void lose_client(struct camera *camera, int err)
{
	camera->server_failed = port_stop_requested() ? "stopped before its end" :
				err == -ETIMEDOUT    ? "a picture could not be sent in time" :
						       "the client of the pictures has gone";
	camera->server_error = err == -ETIMEDOUT ? 0 : err;
	stream_close(&camera->client);
}

/* What the connection's window did meanwhile; where the system does not say, the truth file has no line of it. */
static void note_connection(struct camera *camera, uint32_t number)
{
	struct truth_connection truth = { .number = number };

	if (!camera->truth.file || port_connection_read(camera->client.sock, &truth.connection))
		return;
	truth.t_ns = camera_now_ns(camera);
	truth_connection(&camera->truth, &truth);
}

static void send_one(struct camera *camera, const uint8_t *wire)
{
	struct picture_header header;
	int err;

	if (camera->client.sock == PORT_SOCKET_NONE || picture_header_parse(wire, &header)) {
		camera->discarded++;
		return;
	}
	begun_add(&camera->begun, header.number);
	BW_EVENT(camera_send, header.number);
	err = stream_write(&camera->client, wire, PICTURE_HEADER_BYTES + picture_pixels_bytes(&header), camera->timeout_ns, NULL);
	if (err) {
		camera->unsent++;
		lose_client(camera, err);
		return;
	}
	BW_EVENT(camera_sent, header.number);
	camera->sent++;
	note_connection(camera, header.number);
}

/* The stream's end: no picture comes any more. */
static void send_end(struct camera *camera)
{
	const struct render_settings *settings = &camera->scene.camera;
	const struct picture_header end = { .width_px = settings->width_px, .height_px = settings->height_px,
					    .number = atomic_load(&camera->captured), .pose = { 0, 0, ZOOM_ONE_Q8 },
					    .exposure_us = settings->exposure_us, .is_end = true };
	uint8_t wire[PICTURE_HEADER_BYTES];
	int err;

	picture_header_pack(&end, wire);
	err = stream_write(&camera->client, wire, sizeof(wire), camera->timeout_ns, NULL);
	if (err)
		lose_client(camera, err);
	else
		stream_close(&camera->client);
}

void camera_serve(void *argument)
{
	struct camera *camera = argument;

	while (!picture_queue_is_over(&camera->queue)) {
		const uint8_t *wire = picture_queue_next(&camera->queue, STREAM_LOOK_NS);

		accept_client(camera);
		if (!wire)
			continue;
		send_one(camera, wire);
		picture_queue_done(&camera->queue);
	}
	if (camera->client.sock != PORT_SOCKET_NONE)
		send_end(camera);
	atomic_fetch_sub(&camera->running, 1);
}
