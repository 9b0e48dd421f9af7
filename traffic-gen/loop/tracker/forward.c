/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/time_units.h"
#include "events/bwevents.h"
#include "loop/tracker/tracking.h"
#include "traffic/connection.h"

#define ATTEMPT_NS (200 * NS_PER_MS) /* how long one to reach the display may take, and from one to the next */

enum { QUEUE = 8 };

BW_EVENT_POINT(tracker_forward, "tracker", "forward", "a picture is sent on to the display; tag: its number");

static void reach(struct forwarder *forwarder)
{
	int64_t now_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);
	port_socket sock = PORT_SOCKET_NONE;
	int err;

	if (forwarder->is_lost || forwarder->stream.sock != PORT_SOCKET_NONE || now_monotonic_ns < forwarder->next_attempt_monotonic_ns)
		return;
	err = connection_open(&forwarder->peer, ATTEMPT_NS, &sock);
	if (!err)
		err = stream_open(&forwarder->stream, sock);
	else if (sock != PORT_SOCKET_NONE)
		port_socket_close(sock);
	if (err)
		forwarder->next_attempt_monotonic_ns = now_monotonic_ns + ATTEMPT_NS;
}

static bool send_bytes(struct forwarder *forwarder, const uint8_t *wire, size_t size_bytes)
{
	if (forwarder->stream.sock == PORT_SOCKET_NONE)
		return false;
	if (!stream_write(&forwarder->stream, wire, size_bytes, forwarder->timeout_ns, NULL))
		return true;
	stream_close(&forwarder->stream);
	forwarder->is_lost = true;
	return false;
}

static void forward_one(struct forwarder *forwarder, const uint8_t *wire)
{
	struct picture_header header;

	reach(forwarder);
	if (forwarder->stream.sock != PORT_SOCKET_NONE && !picture_header_parse(wire, &header)) {
		BW_EVENT(tracker_forward, header.number);
		if (send_bytes(forwarder, wire, PICTURE_HEADER_BYTES + picture_pixels_bytes(&header))) {
			forwarder->forwarded++;
			return;
		}
	}
	forwarder->discarded++;
}

static void forward_run(void *argument)
{
	struct forwarder *forwarder = argument;

	while (!picture_queue_is_over(&forwarder->queue)) {
		const uint8_t *wire = picture_queue_next(&forwarder->queue, STREAM_LOOK_NS);

		if (!wire)
			continue;
		forward_one(forwarder, wire);
		picture_queue_done(&forwarder->queue);
	}
	if (forwarder->has_end)
		send_bytes(forwarder, forwarder->end, sizeof(forwarder->end));
	stream_close(&forwarder->stream);
}

/* Return whether there is a thread that forwards. */
static bool begin(struct forwarder *forwarder, size_t largest_bytes)
{
	if (forwarder->thread)
		return true;
	if (forwarder->has_queue) /* there was none to be had */
		return false;
	forwarder->has_queue = true;
	return !picture_queue_create(&forwarder->queue, QUEUE, largest_bytes) &&
	       !port_thread_start("forward", 0, PORT_CPU_ANY, forward_run, forwarder, &forwarder->thread);
}

void forward_picture(struct forwarder *forwarder, const uint8_t *wire, size_t size_bytes, size_t largest_bytes)
{
	uint8_t *room;

	if (!begin(forwarder, largest_bytes)) {
		forwarder->queue.overrun++;
		return;
	}
	room = picture_queue_room(&forwarder->queue);
	if (!room)
		return;
	memcpy(room, wire, size_bytes);
	picture_queue_put(&forwarder->queue);
}

void forward_end(struct forwarder *forwarder, const uint8_t *end)
{
	if (forwarder->thread) {
		forwarder->has_end = end != NULL;
		if (end)
			memcpy(forwarder->end, end, sizeof(forwarder->end));
		picture_queue_end(&forwarder->queue);
		port_thread_join(forwarder->thread);
	}
	if (forwarder->has_queue)
		picture_queue_destroy(&forwarder->queue);
}
