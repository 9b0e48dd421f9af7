/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 0  "BWPI"            16  x of the pose, 1/256 world pixel, signed
 * 4  version, 1        20  y
 * 5  1: the end; or 0  24  zoom, 1/256
 * 6  0, two bytes      28  exposure in us
 * 8  width in pixels   32  CRC-32 of the pixels
 * 10 height            36  CRC-32 of the 36 bytes before
 * 12 number
 */
#include "loop/camera/picture.h"

#include <inttypes.h>
#include <stdio.h>

#include <string.h>

#include "base/big_endian.h"

enum { VERSION = 1, HEADER_CRC_AT = 36 };

static const uint8_t magic[4] = { 'B', 'W', 'P', 'I' };

uint32_t picture_crc32(uint32_t crc, const uint8_t *data, size_t size_bytes)
{
	uint32_t table[256];

	for (uint32_t i = 0; i < 256; i++) {
		uint32_t rest = i;

		for (int bit = 0; bit < 8; bit++)
			rest = rest >> 1 ^ (rest & 1 ? UINT32_C(0xedb88320) : 0);
		table[i] = rest;
	}
	crc = ~crc;
	for (size_t i = 0; i < size_bytes; i++)
		crc = crc >> 8 ^ table[(crc ^ data[i]) & 255];
	return ~crc;
}

void picture_header_pack(const struct picture_header *header, uint8_t wire[static PICTURE_HEADER_BYTES])
{
	memset(wire, 0, PICTURE_HEADER_BYTES);
	memcpy(wire, magic, sizeof(magic));
	wire[4] = VERSION;
	wire[5] = header->is_end;
	big_endian_put(wire + 8, 2, (uint64_t)header->width_px);
	big_endian_put(wire + 10, 2, (uint64_t)header->height_px);
	big_endian_put(wire + 12, 4, header->number);
	big_endian_put(wire + 16, 4, (uint64_t)header->pose.x_q8);
	big_endian_put(wire + 20, 4, (uint64_t)header->pose.y_q8);
	big_endian_put(wire + 24, 4, (uint64_t)header->pose.zoom_q8);
	big_endian_put(wire + 28, 4, (uint64_t)header->exposure_us);
	big_endian_put(wire + 32, 4, header->pixels_crc);
	big_endian_put(wire + HEADER_CRC_AT, 4, picture_crc32(0, wire, HEADER_CRC_AT));
}

static int32_t get_signed(const uint8_t *at)
{
	uint32_t bits = (uint32_t)big_endian_get(at, 4);

	return (int32_t)(bits <= INT32_MAX ? (int64_t)bits : (int64_t)bits - (INT64_C(1) << 32));
}

static int is_place(int32_t at_q8)
{
	return at_q8 >= -PLACE_MAX_Q8 && at_q8 <= PLACE_MAX_Q8;
}

const char *picture_header_parse(const uint8_t wire[static PICTURE_HEADER_BYTES], struct picture_header *header)
{
	struct picture_header found = {
		.width_px = (int32_t)big_endian_get(wire + 8, 2),
		.height_px = (int32_t)big_endian_get(wire + 10, 2),
		.number = (uint32_t)big_endian_get(wire + 12, 4),
		.pose = { get_signed(wire + 16), get_signed(wire + 20), get_signed(wire + 24) },
		.exposure_us = get_signed(wire + 28),
		.pixels_crc = (uint32_t)big_endian_get(wire + 32, 4),
		.is_end = wire[5] == 1,
	};

	if (memcmp(wire, magic, sizeof(magic)) != 0)
		return "does not begin as a picture does: BWPI";
	if (wire[4] != VERSION)
		return "is of another version than 1";
	if (big_endian_get(wire + HEADER_CRC_AT, 4) != picture_crc32(0, wire, HEADER_CRC_AT))
		return "has a damaged header: its CRC-32 differs";
	if (wire[5] > 1)
		return "has a byte 5 that is neither 0 nor 1";
	if (wire[6] || wire[7])
		return "has a header with bytes that are not 0 where they have to be";
	if (found.width_px < PICTURE_SIDE_MIN_PX || found.width_px > PICTURE_SIDE_MAX_PX || found.height_px < PICTURE_SIDE_MIN_PX ||
	    found.height_px > PICTURE_SIDE_MAX_PX)
		return "has another size than 32 to 2048 pixels a side";
	if (!is_place(found.pose.x_q8) || !is_place(found.pose.y_q8))
		return "has a pose beyond the largest world";
	if (found.pose.zoom_q8 < ZOOM_MIN_Q8 || found.pose.zoom_q8 > ZOOM_MAX_Q8)
		return "has another zoom than 64 to 4096";
	if (found.exposure_us < PICTURE_EXPOSURE_MIN_US || found.exposure_us > PICTURE_EXPOSURE_MAX_US)
		return "has another exposure than 1 to 1000000 us";
	if (found.is_end && found.pixels_crc)
		return "is the end of the stream, and has pixels";
	*header = found;
	return NULL;
}

const char *picture_pixels_check(const struct picture_header *header, const uint8_t *pixels)
{
	return picture_crc32(0, pixels, picture_pixels_bytes(header)) == header->pixels_crc ? NULL : "has damaged pixels: their CRC-32 differs";
}

size_t picture_pgm_head(int32_t width_px, int32_t height_px, char text[static PICTURE_PGM_HEAD_BYTES])
{
	return (size_t)snprintf(text, PICTURE_PGM_HEAD_BYTES, "P5\n%" PRId32 " %" PRId32 "\n255\n", width_px, height_px);
}
