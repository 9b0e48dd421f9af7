/* SPDX-License-Identifier: Apache-2.0 */
/** Fuzz target: pixels and pose of any kind before the tracker. After a header, made right where it is not, come the pixels; black if they end. */
#include <string.h>

#include "base/big_endian.h"
#include "fuzz.h"
#include "loop/camera/picture.h"
#include "loop/tracker/mark.h"
#include "loop/tracker/track.h"

enum { SIDE_MAX_PX = 96 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t wire[PICTURE_HEADER_BYTES], *pixels;
	struct picture_header header;
	struct tracker tracker;
	struct track found;
	size_t pixels_bytes;

	if (size < PICTURE_HEADER_BYTES)
		return 0;
	memcpy(wire, data, PICTURE_HEADER_BYTES);
	big_endian_put(wire + 36, 4, picture_crc32(0, wire, 36));
	if (picture_header_parse(wire, &header) || header.width_px > SIDE_MAX_PX || header.height_px > SIDE_MAX_PX)
		return 0;
	if (tracker_make(&tracker, 4 + data[36] % 61, header.width_px, header.height_px))
		return 0;
	pixels_bytes = picture_pixels_bytes(&header);
	pixels = calloc(pixels_bytes, 1);
	promise(pixels != NULL);
	size -= PICTURE_HEADER_BYTES;
	memcpy(pixels, data + PICTURE_HEADER_BYTES, size < pixels_bytes ? size : pixels_bytes);
	found = track(&tracker, pixels, &header.pose);
	promise(found.quality >= 0 && found.quality <= 1000 && found.found == (found.quality >= TRACK_QUALITY_MIN));
	draw_box(pixels, header.width_px, header.height_px, found.picture, data[37], 255);
	free(pixels);
	tracker_free(&tracker);
	return 0;
}
