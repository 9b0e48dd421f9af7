/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What goes over the wire between producer and consumer (docs/native-tools.md, "On the wire"): the header of a
 * message, the fill behind it, and the hello that opens a TCP connection. Pure.
 */
#ifndef BW_FRAME_H
#define BW_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	FRAME_HEADER_BYTES = 10,
	FRAME_HELLO_BYTES = 24,
	FRAME_HELLO_VERSION = 1,
	FRAME_FILL_PERIOD = 256,
};

struct frame_header {
	uint32_t sequence;
	int32_t lateness_ns; /* sent - scheduled; INT32_MIN and INT32_MAX: saturated, the sample is invalid */
};

struct frame_hello {
	uint16_t stream_id;
	uint64_t nonce;
	uint32_t size_bytes; /* of each message of the stream */
};

/** Saturate sent - scheduled to the field of the header. */
int32_t frame_saturate_ns(int64_t lateness_ns);
/** True when the lateness was not saturated. */
bool frame_lateness_valid(int32_t lateness_ns);

/** Write a header with its check value over nonce, stream, sequence and lateness. */
void frame_pack(const struct frame_header *header, uint64_t nonce, uint16_t stream_id,
		uint8_t wire[FRAME_HEADER_BYTES]);
/**
 * Read a header.
 *
 * @return 0, or -EBADMSG when the check value is not that of this run and stream (header untouched)
 */
int frame_parse(const uint8_t wire[FRAME_HEADER_BYTES], uint64_t nonce, uint16_t stream_id,
		struct frame_header *header);

void frame_hello_pack(const struct frame_hello *hello, uint8_t wire[FRAME_HELLO_BYTES]);
/**
 * Read a hello.
 *
 * @return 0, -EBADMSG (magic, or reserved bits set), or -EPROTONOSUPPORT (version); hello untouched on error
 */
int frame_hello_parse(const uint8_t wire[FRAME_HELLO_BYTES], struct frame_hello *hello);

/** Byte of the fill at a position of a message (position >= FRAME_HEADER_BYTES); repeats every FRAME_FILL_PERIOD bytes. */
uint8_t frame_fill_byte(size_t position);
/** Fill a buffer whose first byte stands for a position that is a multiple of FRAME_FILL_PERIOD. */
void frame_fill(uint8_t *buffer, size_t size_bytes);
/** True when bytes are the fill that belongs at a position. */
bool frame_fill_matches(const uint8_t *bytes, size_t size_bytes, size_t position);

#endif
