/* SPDX-License-Identifier: Apache-2.0 */
/** Fuzz target: a picture of the stream, its check value as it came, and made right. What is taken is the same again once it is packed. */
#include <string.h>

#include "base/big_endian.h"
#include "fuzz.h"
#include "loop/camera/picture.h"

static void read_one(const uint8_t wire[static PICTURE_HEADER_BYTES], const uint8_t *pixels, size_t size_bytes)
{
	uint8_t again[PICTURE_HEADER_BYTES];
	struct picture_header found;

	if (picture_header_parse(wire, &found))
		return;
	promise(found.width_px >= PICTURE_SIDE_MIN_PX && found.width_px <= PICTURE_SIDE_MAX_PX);
	promise(found.height_px >= PICTURE_SIDE_MIN_PX && found.height_px <= PICTURE_SIDE_MAX_PX);
	promise(found.pose.zoom_q8 >= ZOOM_MIN_Q8 && found.pose.zoom_q8 <= ZOOM_MAX_Q8);
	picture_header_pack(&found, again);
	promise(memcmp(again, wire, PICTURE_HEADER_BYTES) == 0);
	if (size_bytes >= picture_pixels_bytes(&found) && !picture_pixels_check(&found, pixels))
		promise(picture_crc32(0, pixels, picture_pixels_bytes(&found)) == found.pixels_crc);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t wire[PICTURE_HEADER_BYTES];

	if (size < PICTURE_HEADER_BYTES)
		return 0;
	memcpy(wire, data, PICTURE_HEADER_BYTES);
	read_one(wire, data + PICTURE_HEADER_BYTES, size - PICTURE_HEADER_BYTES);
	big_endian_put(wire + 36, 4, picture_crc32(0, wire, 36));
	read_one(wire, data + PICTURE_HEADER_BYTES, size - PICTURE_HEADER_BYTES);
	return 0;
}
