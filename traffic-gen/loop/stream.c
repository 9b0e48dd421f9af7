/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/stream.h"

#include <errno.h>
#include <stdlib.h>

#include "base/time_units.h"

#define STOP_NS NS_PER_S /* what a write may take once a stop is requested */

int stream_open(struct loop_stream *stream, port_socket sock)
{
	int err = port_poller_create(1, &stream->poller);

	stream->sock = sock;
	if (err) {
		stream->poller = NULL;
		stream_close(stream);
		return err;
	}
	err = port_poller_add(stream->poller, sock, PORT_POLL_OUT, NULL);
	if (err)
		stream_close(stream);
	return err;
}

void stream_close(struct loop_stream *stream)
{
	if (stream->poller) {
		port_poller_remove(stream->poller, stream->sock);
		port_poller_destroy(stream->poller);
	}
	if (stream->sock != PORT_SOCKET_NONE)
		port_socket_close(stream->sock);
	*stream = (struct loop_stream){ .sock = PORT_SOCKET_NONE };
}

/* Wait until something may be written. Return 0, -ETIMEDOUT, -ECANCELED or -errno. */
static int wait_writable(struct loop_stream *stream, int64_t *deadline_monotonic_ns, const atomic_bool *given_up)
{
	int64_t now_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);
	struct port_event event;
	int found;

	if (given_up && atomic_load(given_up))
		return -ECANCELED;
	if (port_stop_requested() && *deadline_monotonic_ns > now_monotonic_ns + STOP_NS)
		*deadline_monotonic_ns = now_monotonic_ns + STOP_NS;
	if (now_monotonic_ns >= *deadline_monotonic_ns)
		return -ETIMEDOUT;
	found = port_poller_wait(stream->poller, &event, 1, STREAM_LOOK_NS);
	return found < 0 ? found : 0;
}

int stream_write(struct loop_stream *stream, const void *data, size_t size_bytes, int64_t timeout_ns, const atomic_bool *given_up)
{
	int64_t deadline_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC) + timeout_ns;
	const uint8_t *from = data;

	while (size_bytes) {
		const struct port_slice slice = { from, size_bytes };
		int64_t length = port_send(stream->sock, &slice, 1, false);
		int err;

		if (length == -EAGAIN) {
			err = wait_writable(stream, &deadline_monotonic_ns, given_up);
			if (err)
				return err;
			continue;
		}
		if (length < 0)
			return (int)length;
		from += length;
		size_bytes -= (size_t)length;
	}
	return 0;
}

int64_t stream_read_some(const struct loop_stream *stream, void *data, size_t size_bytes)
{
	int64_t length = port_recv(stream->sock, data, size_bytes, NULL);

	if (length != -EAGAIN)
		return length;
	port_socket_wait_readable(stream->sock, STREAM_LOOK_NS);
	return port_recv(stream->sock, data, size_bytes, NULL);
}

int picture_reader_make(struct picture_reader *reader, struct loop_stream *stream, int64_t timeout_ns)
{
	*reader = (struct picture_reader){ .stream = stream, .timeout_ns = timeout_ns };
	reader->wire = malloc(PICTURE_HEADER_BYTES + (size_t)PICTURE_SIDE_MAX_PX * PICTURE_SIDE_MAX_PX);
	return reader->wire ? 0 : -ENOMEM;
}

void picture_reader_free(struct picture_reader *reader)
{
	free(reader->wire);
	reader->wire = NULL;
}

static bool fail(struct picture_reader *reader, const char *why, int err)
{
	reader->failed = why;
	reader->error = err;
	return false;
}

static bool read_whole(struct picture_reader *reader, size_t begin_bytes, size_t end_bytes)
{
	int64_t deadline_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC) + reader->timeout_ns;

	while (begin_bytes < end_bytes) {
		int64_t length = stream_read_some(reader->stream, reader->wire + begin_bytes, end_bytes - begin_bytes);

		if (length > 0) {
			begin_bytes += (size_t)length;
			continue;
		}
		if (length != -EAGAIN && begin_bytes)
			return fail(reader, "the last picture is cut off", 0);
		if (length == 0 || length == -ECONNRESET)
			return fail(reader, "the connection was closed before the end of the pictures", 0);
		if (length != -EAGAIN)
			return fail(reader, "the connection failed", (int)length);
		if (port_stop_requested())
			return fail(reader, "stopped before its end", 0);
		if (port_clock_now_ns(PORT_CLOCK_MONOTONIC) >= deadline_monotonic_ns)
			return fail(reader, begin_bytes ? "the last picture is cut off" : "no picture came in time", 0);
	}
	return true;
}

/* Numbers rise, and the end's is beyond them. Return NULL, or why a header contradicts those before it. */
static const char *check_number(struct picture_reader *reader, const struct picture_header *header)
{
	bool contradicts = reader->has_number && header->number <= reader->last_number;

	reader->has_number = true;
	reader->last_number = header->number;
	if (!contradicts)
		return NULL;
	return header->is_end ? "says fewer pictures than came" : "has no higher number than the one before it";
}

bool picture_reader_next(struct picture_reader *reader, struct picture_header *header, void (*begun)(uint32_t number))
{
	if (!read_whole(reader, 0, PICTURE_HEADER_BYTES))
		return false;
	reader->detail = picture_header_parse(reader->wire, header);
	if (reader->detail)
		return fail(reader, "what came is no picture", 0);
	reader->detail = check_number(reader, header);
	if (reader->detail)
		return fail(reader, "the pictures' numbers contradict each other", 0);
	if (begun && !header->is_end)
		begun(header->number);
	return read_whole(reader, PICTURE_HEADER_BYTES, PICTURE_HEADER_BYTES + picture_pixels_bytes(header));
}
