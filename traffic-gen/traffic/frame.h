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
	FRAME_HELLO_VERSION = 2,
	FRAME_FILL_PERIOD = 256,
};

#define FRAME_LATENESS_EXACT_NS (INT64_C(1) << 30)
#define FRAME_LATENESS_STEP_NS INT64_C(1024)
#define FRAME_LATENESS_MAX_NS                                                                                        \
	(FRAME_LATENESS_EXACT_NS + FRAME_LATENESS_STEP_NS * (INT32_MAX - FRAME_LATENESS_EXACT_NS)) /* 18 minutes */

struct frame_header {
	uint32_t sequence;
	int64_t lateness_ns; /* sent - scheduled, as frame_lateness_ns returns it */
};

struct frame_hello {
	uint16_t stream_id;
	uint64_t nonce;
	uint32_t size_bytes; /* of each message of the stream */
};

/**
 * What the header's field of 32 bits can say of sent - scheduled: below 1.07 s all of it, then in steps of 1.024 us,
 * towards 0, and from FRAME_LATENESS_MAX_NS on no more than that.
 */
int64_t frame_lateness_ns(int64_t lateness_ns);
/** False when the lateness is larger than the header can say: the sample is invalid. */
bool frame_lateness_valid(int64_t lateness_ns);

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

/** Fill a buffer whose first byte stands for a position that is a multiple of FRAME_FILL_PERIOD. */
void frame_fill(uint8_t *buffer, size_t size_bytes);
/** True when bytes are the fill that belongs at a position. */
bool frame_fill_matches(const uint8_t *bytes, size_t size_bytes, size_t position);

#endif
