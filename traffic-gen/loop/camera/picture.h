/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stream of pictures: of each a header, then its pixels. It says where the camera looked, and nothing of targets or time: who gets
 * it has to look. Pure.
 */
#ifndef BW_LOOP_PICTURE_H
#define BW_LOOP_PICTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loop/camera/pose.h"

enum {
	PICTURE_HEADER_BYTES = 40,
	PICTURE_PGM_HEAD_BYTES = 32,
	PICTURE_SIDE_MIN_PX = 32,
	PICTURE_SIDE_MAX_PX = 2048,
	PICTURE_EXPOSURE_MIN_US = 1,
	PICTURE_EXPOSURE_MAX_US = 1000000,
	PLACE_MAX_Q8 = 8192 * 256, /* of poses and commands, either way: that of the largest world */
};

struct picture_header {
	int32_t width_px, height_px;
	uint32_t number; /* of the picture, from 0 */
	struct pose pose;
	int32_t exposure_us;
	uint32_t pixels_crc; /* picture_crc32 of them */
	bool is_end;         /* the stream ends with it: no pixels follow, pixels_crc is 0, number is how many there were */
};

/** CRC-32 (IEEE 802.3, as of zlib and PNG) of bytes. @param crc  0, or that of what comes before them */
uint32_t picture_crc32(uint32_t crc, const uint8_t *data, size_t size_bytes);

/** Write a header, whose pixels_crc is set. */
void picture_header_pack(const struct picture_header *header, uint8_t wire[static PICTURE_HEADER_BYTES]);
/** Read one. @return NULL, or why it is none; *header is then as before */
const char *picture_header_parse(const uint8_t wire[static PICTURE_HEADER_BYTES], struct picture_header *header);
/** How many bytes of pixels follow a header. */
static inline size_t picture_pixels_bytes(const struct picture_header *header)
{
	return header->is_end ? 0 : (size_t)header->width_px * (size_t)header->height_px;
}
/** Whether pixels are those of a header. @return NULL, or why not */
const char *picture_pixels_check(const struct picture_header *header, const uint8_t *pixels);
/** What is before the pixels in a PGM file (P5), with its end of text. @return its length */
size_t picture_pgm_head(int32_t width_px, int32_t height_px, char text[static PICTURE_PGM_HEAD_BYTES]);

#endif
