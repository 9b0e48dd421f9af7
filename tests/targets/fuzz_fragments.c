/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Fuzz target: what puts messages together out of frames. Whatever comes, it writes into its room and nowhere else, a message is
 * as long as its first fragment says, and its last part is that of the frame that made it whole.
 */
#include "../traffic_gen/fuzz.h"
#include "fragments.h"

#include <errno.h>
#include <string.h>

enum { ROOM_BYTES = 300 };

static const struct rtdip_address sender = { .port = 7000 };

/* Cut what there is into frames of any room, and put it together again. */
static void there_and_back(const uint8_t *data, size_t size_bytes, size_t frame_max_bytes)
{
	uint8_t frame[RTDIP_FRAGMENT_HEADER_BYTES + FRAGMENTS_LENGTH_BYTES + UINT8_MAX], *room = malloc(size_bytes ? size_bytes : 1);
	struct rtdip_fragment next = { 0 };
	struct assembly assembly = { 0 };
	int64_t length = -EAGAIN;

	promise(room != NULL);
	while (next.message == 0) {
		size_t frame_bytes = fragments_cut(&next, data, size_bytes, frame, frame_max_bytes);

		promise(length == -EAGAIN && frame_bytes <= frame_max_bytes);
		length = fragments_take(&assembly, &sender, frame, frame_bytes, room, size_bytes);
	}
	promise(length == (int64_t)size_bytes && memcmp(room, data, size_bytes) == 0);
	free(room);
}

/* Frames, before each of them a byte: its length. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct assembly assembly = { 0 };
	uint8_t *room = malloc(ROOM_BYTES);

	promise(room != NULL);
	if (size)
		there_and_back(data + 1, size - 1, (size_t)RTDIP_FRAGMENT_HEADER_BYTES + FRAGMENTS_LENGTH_BYTES + data[0]);
	while (size) {
		size_t frame_bytes = data[0] < size - 1 ? data[0] : size - 1;
		uint8_t *exact = malloc(frame_bytes ? frame_bytes : 1);
		int64_t length;

		promise(exact != NULL);
		memcpy(exact, data + 1, frame_bytes);
		length = fragments_take(&assembly, &sender, exact, frame_bytes, room, ROOM_BYTES);
		promise(length <= ROOM_BYTES && (length >= 0 || length == -EAGAIN || length == -EBADMSG || length == -EMSGSIZE));
		if (length > 0)
			promise(room[length - 1] == exact[frame_bytes - 1]);
		free(exact);
		data += 1 + frame_bytes;
		size -= 1 + frame_bytes;
	}
	free(room);
	return 0;
}
