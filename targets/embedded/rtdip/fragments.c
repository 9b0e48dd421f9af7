/* SPDX-License-Identifier: Apache-2.0 */
#include "fragments.h"

#include <errno.h>
#include <string.h>

#include "numbers.h"

static size_t least(size_t one, size_t other)
{
	return one < other ? one : other;
}

size_t fragments_cut(struct rtdip_fragment *next, const uint8_t *data, size_t size_bytes, uint8_t *frame, size_t frame_max_bytes)
{
	size_t used_bytes = RTDIP_FRAGMENT_HEADER_BYTES, done_bytes = 0, part_bytes;

	rtdip_fragment_pack(next, frame);
	if (next->offset == 0) {
		big_endian_put(frame + used_bytes, FRAGMENTS_LENGTH_BYTES, size_bytes);
		used_bytes += FRAGMENTS_LENGTH_BYTES;
	} else {
		done_bytes = next->offset - FRAGMENTS_LENGTH_BYTES;
	}
	part_bytes = least(size_bytes - done_bytes, frame_max_bytes - used_bytes);
	memcpy(frame + used_bytes, data + done_bytes, part_bytes);
	used_bytes += part_bytes;
	if (done_bytes + part_bytes == size_bytes)
		*next = (struct rtdip_fragment){ next->message + 1, 0 };
	else
		next->offset += (uint32_t)(used_bytes - RTDIP_FRAGMENT_HEADER_BYTES);
	return used_bytes;
}

/* Begin a message by its first fragment. */
static int begin(struct assembly *assembly, const struct rtdip_address *from, uint32_t message, const uint8_t *part,
		 size_t part_bytes, size_t room_bytes)
{
	*assembly = (struct assembly){ .from = *from, .message = message };
	if (part_bytes < FRAGMENTS_LENGTH_BYTES)
		return -EBADMSG;
	assembly->whole_bytes = FRAGMENTS_LENGTH_BYTES + (size_t)big_endian_get(part, FRAGMENTS_LENGTH_BYTES);
	return assembly->whole_bytes - FRAGMENTS_LENGTH_BYTES > room_bytes ? -EMSGSIZE : 0;
}

int64_t fragments_take(struct assembly *assembly, const struct rtdip_address *from, const uint8_t *frame, size_t size_bytes,
		       uint8_t *room, size_t room_bytes)
{
	struct rtdip_fragment fragment;
	const uint8_t *part = frame + RTDIP_FRAGMENT_HEADER_BYTES;
	size_t part_bytes = size_bytes - RTDIP_FRAGMENT_HEADER_BYTES, front_bytes = 0;
	int err = 0;

	if (size_bytes <= RTDIP_FRAGMENT_HEADER_BYTES)
		return -EBADMSG;
	fragment = rtdip_fragment_parse(frame);
	if (fragment.offset == 0) {
		err = begin(assembly, from, fragment.message, part, part_bytes, room_bytes);
		front_bytes = FRAGMENTS_LENGTH_BYTES;
	} else if (assembly->position == 0 || fragment.message != assembly->message || fragment.offset != assembly->position ||
		   !rtdip_same_address(&assembly->from, from)) {
		return -EBADMSG;
	}
	if (!err && part_bytes > assembly->whole_bytes - assembly->position)
		err = -EBADMSG;
	if (err) {
		assembly->position = 0;
		return err;
	}
	memcpy(room + assembly->position + front_bytes - FRAGMENTS_LENGTH_BYTES, part + front_bytes, part_bytes - front_bytes);
	assembly->position += part_bytes;
	if (assembly->position < assembly->whole_bytes)
		return -EAGAIN;
	assembly->position = 0;
	return (int64_t)assembly->whole_bytes - FRAGMENTS_LENGTH_BYTES;
}
