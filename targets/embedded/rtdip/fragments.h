/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of more than one frame: in front of each its length (32 bits, network order), all of it cut into fragments as those of
 * the replay (traffic/rtdip_fragment.h), whose receivers know the length from their plan. Pure.
 */
#ifndef RTDIP_FRAGMENTS_H
#define RTDIP_FRAGMENTS_H

#include <stddef.h>
#include <stdint.h>

#include "rtdip.h"
#include "traffic/rtdip_fragment.h"

enum { FRAGMENTS_LENGTH_BYTES = 4 };

/* What is there of a message. */
struct assembly {
	struct rtdip_address from; /* whose message it is */
	uint32_t message;
	size_t position;    /* of the next fragment; 0: none has begun */
	size_t whole_bytes; /* of the message, its length in front included */
};

/**
 * Cut the next fragment off a message.
 *
 * @param next             which one; it is moved on, and to the next message behind the last
 * @param frame            room for frame_max_bytes, RTDIP_FRAGMENT_HEADER_BYTES + FRAGMENTS_LENGTH_BYTES at least
 * @return bytes of the frame's data
 */
size_t fragments_cut(struct rtdip_fragment *next, const uint8_t *data, size_t size_bytes, uint8_t *frame, size_t frame_max_bytes);

/**
 * Take a frame's part of a message. One that follows no other begins nothing, so a message of which one is lost is lost; so is one
 * within which another sender begins his.
 *
 * @param room  where the message is put together: the same until it is whole
 * @return bytes of the message that is whole now; -EAGAIN: not yet; -EBADMSG: no part of one; -EMSGSIZE: no room
 */
int64_t fragments_take(struct assembly *assembly, const struct rtdip_address *from, const uint8_t *frame, size_t size_bytes,
		       uint8_t *room, size_t room_bytes);

#endif
