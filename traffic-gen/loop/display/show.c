/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/display/show.h"

#include <string.h>

#include "base/time_units.h"

#define WRITE_NS (1000000 * NS_PER_S) /* a window that somebody has paused is given up by nobody but show_end */
#define END_NS (2 * NS_PER_S)

enum { QUEUE = 4, PICTURE_MAX_BYTES = PICTURE_HEADER_BYTES + PICTURE_SIDE_MAX_PX * PICTURE_SIDE_MAX_PX };

/* Return whether it took all of it. */
static bool give(struct show *show, const void *data, size_t size_bytes)
{
	if (show->is_lost)
		return false;
	if (!stream_write(&show->in, data, size_bytes, WRITE_NS, &show->is_given_up))
		return true;
	show->is_lost = true;
	return false;
}

static void show_one(struct show *show, const uint8_t *wire)
{
	struct picture_header header;
	char head[PICTURE_PGM_HEAD_BYTES];

	if (!picture_header_parse(wire, &header) && give(show, head, picture_pgm_head(header.width_px, header.height_px, head)) &&
	    give(show, wire + PICTURE_HEADER_BYTES, picture_pixels_bytes(&header)))
		show->shown++;
	else
		show->unwritten++;
}

static void show_all(void *argument)
{
	struct show *show = argument;

	while (!picture_queue_is_over(&show->queue)) {
		const uint8_t *wire = picture_queue_next(&show->queue, STREAM_LOOK_NS);

		if (!wire)
			continue;
		show_one(show, wire);
		picture_queue_done(&show->queue);
	}
	stream_close(&show->in);
	atomic_store(&show->is_over, true);
}

int show_start(struct show *show)
{
	int err = picture_queue_create(&show->queue, QUEUE, PICTURE_MAX_BYTES);

	if (!err)
		err = port_child_start(&show->child, show->argv, false);
	if (!err)
		err = stream_open(&show->in, show->child.in);
	if (!err)
		err = port_thread_start("show", 0, PORT_CPU_ANY, show_all, show, &show->thread);
	return err;
}

void show_picture(struct show *show, const uint8_t *wire, size_t size_bytes)
{
	uint8_t *room = picture_queue_room(&show->queue);

	if (!room)
		return;
	memcpy(room, wire, size_bytes);
	picture_queue_put(&show->queue);
}

/* Return whether time is left. */
static bool wait_a_little(const struct show *show)
{
	if (port_stop_requested() || port_clock_now_ns(PORT_CLOCK_MONOTONIC) >= show->deadline_monotonic_ns)
		return false;
	port_sleep_ns(NS_PER_MS);
	return true;
}

void show_end(struct show *show)
{
	int exit_code;

	show->deadline_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC) + END_NS;
	if (show->thread) {
		picture_queue_end(&show->queue);
		while (!atomic_load(&show->is_over) && wait_a_little(show))
			;
		atomic_store(&show->is_given_up, true);
		port_thread_join(show->thread);
		show->thread = NULL;
		while (!port_child_has_ended(&show->child, &exit_code) && wait_a_little(show))
			;
	}
	stream_close(&show->in);
	port_child_end(&show->child);
	picture_queue_destroy(&show->queue);
}

uint64_t show_missed(const struct show *show)
{
	return show->queue.overrun + show->unwritten;
}
