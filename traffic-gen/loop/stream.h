/* SPDX-License-Identifier: Apache-2.0 */
/* A connection of camera, tracker and display: whole pieces in and out, never longer than a time, and a stop is heard. */
#ifndef BW_LOOP_STREAM_H
#define BW_LOOP_STREAM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loop/camera/picture.h"
#include "port/port.h"

#define STREAM_LOOK_NS INT64_C(20000000) /* how often the stop flag is looked at while nothing comes or goes */

struct loop_stream {
	port_socket sock; /* PORT_SOCKET_NONE: closed */
	struct port_poller *poller; /* to wait until something may be written */
};

/** Take a socket over. @return 0 or -errno: the socket is closed then */
int stream_open(struct loop_stream *stream, port_socket sock);
/** Harmless where it is closed. */
void stream_close(struct loop_stream *stream);

/**
 * Write all of it. Once a stop is requested it takes a second at most.
 *
 * @param given_up  ends it, too, once it is true; NULL: nothing does
 * @return 0, -ETIMEDOUT, -ECANCELED: given up, or -errno
 */
int stream_write(struct loop_stream *stream, const void *data, size_t size_bytes, int64_t timeout_ns, const atomic_bool *given_up);
/** Read what is there. @return bytes, 0: the other end has closed, -EAGAIN: nothing came for STREAM_LOOK_NS, or -errno */
int64_t stream_read_some(const struct loop_stream *stream, void *data, size_t size_bytes);

/* A reader of pictures. */
struct picture_reader {
	struct loop_stream *stream;
	uint8_t *wire;      /* header and pixels of the last picture; PICTURE_HEADER_BYTES + those of the largest */
	int64_t timeout_ns; /* from a picture to the next */
	bool has_number;
	uint32_t last_number; /* of the picture that came last */
	const char *failed; /* why it came to no end; NULL: it did not fail */
	const char *detail; /* of a header that cannot be: why; else NULL */
	int error;          /* -errno of that, or 0 */
};

/** @return 0 or -ENOMEM */
int picture_reader_make(struct picture_reader *reader, struct loop_stream *stream, int64_t timeout_ns);
void picture_reader_free(struct picture_reader *reader);
/**
 * Read a picture whole, or the end of the stream. Numbers have to rise, with or without gaps; the pixels are not checked.
 *
 * @param begun  called once its header is there; NULL: nothing is called
 * @return whether there is one; else failed says why not
 */
bool picture_reader_next(struct picture_reader *reader, struct picture_header *header, void (*begun)(uint32_t number));

#endif
