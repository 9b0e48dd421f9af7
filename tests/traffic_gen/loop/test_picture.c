/* SPDX-License-Identifier: Apache-2.0 */
/** Pictures on the wire: the header's bytes, and what is refused, with its reason. */
#include "../check.h"
#include "base/big_endian.h"
#include "loop/camera/picture.h"

static const struct picture_header known = {
	.width_px = 320, .height_px = 240, .number = 0x01020304, .pose = { 0x00112233, -2, 0x0123 }, .exposure_us = 10000,
	.pixels_crc = 0xa1a2a3a4,
};

static void test_crc_is_the_one_of_the_standards(void)
{
	CHECK_INT(picture_crc32(0, (const uint8_t *)"123456789", 9), 0xcbf43926);
	CHECK_INT(picture_crc32(picture_crc32(0, (const uint8_t *)"1234", 4), (const uint8_t *)"56789", 5), 0xcbf43926);
	CHECK_INT(picture_crc32(0, NULL, 0), 0);
}

static void test_on_the_wire(void)
{
	static const uint8_t wanted[36] = {
		'B', 'W', 'P', 'I', 1, 0, 0, 0, 1, 0x40, 0, 240, 1, 2, 3, 4, 0, 0x11, 0x22, 0x33,
		255, 255, 255, 254, 0, 0, 1, 0x23, 0, 0, 0x27, 0x10, 0xa1, 0xa2, 0xa3, 0xa4,
	};
	uint8_t wire[PICTURE_HEADER_BYTES];
	struct picture_header found;

	memset(wire, 0xee, sizeof(wire));
	picture_header_pack(&known, wire);
	CHECK(memcmp(wire, wanted, sizeof(wanted)) == 0);
	CHECK_INT(big_endian_get(wire + 36, 4), picture_crc32(0, wanted, sizeof(wanted)));
	CHECK(!picture_header_parse(wire, &found));
	CHECK_INT(found.width_px, 320);
	CHECK_INT(found.height_px, 240);
	CHECK_INT(found.number, 0x01020304);
	CHECK_INT(found.pose.x_q8, 0x00112233);
	CHECK_INT(found.pose.y_q8, -2);
	CHECK_INT(found.pose.zoom_q8, 0x0123);
	CHECK_INT(found.exposure_us, 10000);
	CHECK_INT(found.pixels_crc, 0xa1a2a3a4);
	CHECK_INT(picture_pixels_bytes(&found), 76800);
}

static void test_the_example_of_the_documentation(void)
{
	static const uint8_t black[320 * 240], wanted[PICTURE_HEADER_BYTES] = {
		0x42, 0x57, 0x50, 0x49, 0x01, 0x00, 0x00, 0x00, 0x01, 0x40, 0x00, 0xf0, 0x00, 0x00, 0x00, 0x11,
		0x00, 0x04, 0x00, 0x00, 0x00, 0x03, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x27, 0x10,
		0x35, 0xb9, 0xef, 0x0c, 0xf0, 0x25, 0x0b, 0x1b,
	};
	struct picture_header header = { 320, 240, 17, { 262144, 196608, 256 }, 10000, picture_crc32(0, black, sizeof(black)), false };
	uint8_t wire[PICTURE_HEADER_BYTES];

	picture_header_pack(&header, wire);
	CHECK(memcmp(wire, wanted, sizeof(wire)) == 0);
}

static void test_the_end_has_no_pixels(void)
{
	struct picture_header end = known, found;
	uint8_t wire[PICTURE_HEADER_BYTES];

	end.is_end = true;
	end.pixels_crc = 0;
	picture_header_pack(&end, wire);
	CHECK_INT(wire[5], 1);
	CHECK(!picture_header_parse(wire, &found));
	CHECK(found.is_end);
	CHECK_INT(picture_pixels_bytes(&found), 0);
	CHECK(!picture_pixels_check(&found, NULL));
	picture_header_pack(&known, wire);
	CHECK(!picture_header_parse(wire, &found));
	CHECK(!found.is_end);
}

static void test_every_damaged_bit_is_refused(void)
{
	uint8_t wire[PICTURE_HEADER_BYTES];
	struct picture_header found = { .number = 77 };

	picture_header_pack(&known, wire);
	for (int bit = 0; bit < 8 * PICTURE_HEADER_BYTES; bit++) {
		wire[bit / 8] ^= (uint8_t)(1 << bit % 8);
		CHECK_THAT(picture_header_parse(wire, &found) != NULL, "bit %d of byte %d makes no difference", bit % 8, bit / 8);
		wire[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	CHECK_INT(found.number, 77);
}

/* A header that somebody wrote, with a check value that is right. */
static void refuse(size_t at, unsigned int bytes, uint64_t value, const char *reason)
{
	uint8_t wire[PICTURE_HEADER_BYTES];
	struct picture_header found;
	const char *refused;

	picture_header_pack(&known, wire);
	big_endian_put(wire + at, bytes, value);
	big_endian_put(wire + 36, 4, picture_crc32(0, wire, 36));
	refused = picture_header_parse(wire, &found);
	CHECK_TEXT(refused ? refused : "taken", reason);
}

static void test_what_is_none(void)
{
	static const char size[] = "has another size than 32 to 2048 pixels a side", place[] = "has a pose beyond the largest world";
	static const char zoom[] = "has another zoom than 64 to 4096", exposure[] = "has another exposure than 1 to 1000000 us";

	refuse(3, 1, 'i', "does not begin as a picture does: BWPI");
	refuse(4, 1, 2, "is of another version than 1");
	refuse(5, 1, 1, "is the end of the stream, and has pixels");
	refuse(5, 1, 2, "has a byte 5 that is neither 0 nor 1");
	refuse(5, 1, 255, "has a byte 5 that is neither 0 nor 1");
	refuse(6, 1, 1, "has a header with bytes that are not 0 where they have to be");
	refuse(7, 1, 1, "has a header with bytes that are not 0 where they have to be");
	refuse(8, 2, 31, size);
	refuse(8, 2, 2049, size);
	refuse(10, 2, 0, size);
	refuse(10, 2, 65535, size);
	refuse(16, 4, PLACE_MAX_Q8 + 1, place);
	refuse(20, 4, (uint64_t)-PLACE_MAX_Q8 - 1, place);
	refuse(20, 4, 0x80000000, place);
	refuse(24, 4, 63, zoom);
	refuse(24, 4, 4097, zoom);
	refuse(24, 4, 0xffffffff, zoom);
	refuse(28, 4, 0, exposure);
	refuse(28, 4, 1000001, exposure);
	refuse(28, 4, 0x80000000, exposure);
	refuse(8, 2, 2048, "taken");
	refuse(16, 4, (uint64_t)-PLACE_MAX_Q8, "taken");
}

static void test_damaged_pixels(void)
{
	struct picture_header header = known;
	uint8_t pixels[32 * 32] = { 1, 2, 3 };

	header.width_px = header.height_px = 32;
	header.pixels_crc = picture_crc32(0, pixels, sizeof(pixels));
	CHECK(!picture_pixels_check(&header, pixels));
	pixels[sizeof(pixels) - 1] ^= 1;
	CHECK_TEXT(picture_pixels_check(&header, pixels), "has damaged pixels: their CRC-32 differs");
}

int main(void)
{
	test_crc_is_the_one_of_the_standards();
	test_on_the_wire();
	test_the_example_of_the_documentation();
	test_the_end_has_no_pixels();
	test_every_damaged_bit_is_refused();
	test_what_is_none();
	test_damaged_pixels();
	return check_result();
}
