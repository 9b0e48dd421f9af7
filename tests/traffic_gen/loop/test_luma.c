/* SPDX-License-Identifier: Apache-2.0 */
/** Grey pixels from the frames of real cameras, and the frames that a driver dropped. */
#include <string.h>

#include "../check.h"
#include "loop/camera/luma.h"

enum { WIDTH = 4, HEIGHT = 2, PIXELS = WIDTH * HEIGHT };

static const uint8_t expected[PIXELS] = { 10, 20, 30, 40, 50, 60, 70, 80 };

static void take(const char *name, const uint8_t *frame, size_t size_bytes, struct port_video_luma luma)
{
	uint8_t pixels[PIXELS + 1];

	memset(pixels, 7, sizeof(pixels));
	CHECK_THAT(luma_is_whole(&luma, size_bytes, WIDTH, HEIGHT), "%s is whole", name);
	CHECK_THAT(!luma_is_whole(&luma, size_bytes - 1, WIDTH, HEIGHT), "%s without its last byte is whole", name);
	luma_take(frame, &luma, WIDTH, HEIGHT, pixels);
	CHECK_THAT(memcmp(pixels, expected, PIXELS) == 0, "%s has other pixels", name);
	CHECK_INT(pixels[PIXELS], 7);
}

/* Each frame ends with the last luma, so that one byte less is too short; 99: chroma, 255: what pads a line. */
static void test_formats(void)
{
	static const uint8_t grey[] = { 10, 20, 30, 40, 50, 60, 70, 80 };
	static const uint8_t padded[] = { 10, 20, 30, 40, 255, 255, 50, 60, 70, 80 };
	static const uint8_t yuyv[] = { 10, 99, 20, 99, 30, 99, 40, 99, 50, 99, 60, 99, 70, 99, 80 };
	static const uint8_t yuyv_padded[] = { 10, 99, 20, 99, 30, 99, 40, 99, 255, 255, 50, 99, 60, 99, 70, 99, 80 };
	static const uint8_t uyvy[] = { 99, 10, 99, 20, 99, 30, 99, 40, 99, 50, 99, 60, 99, 70, 99, 80 };

	take("GREY", grey, sizeof(grey), (struct port_video_luma){ 0, 1, 4 });
	take("GREY with lines of 6 bytes", padded, sizeof(padded), (struct port_video_luma){ 0, 1, 6 });
	take("YUYV", yuyv, sizeof(yuyv), (struct port_video_luma){ 0, 2, 8 });
	take("YUYV with lines of 10 bytes", yuyv_padded, sizeof(yuyv_padded), (struct port_video_luma){ 0, 2, 10 });
	take("UYVY", uyvy, sizeof(uyvy), (struct port_video_luma){ 1, 2, 8 });
}

/* The plane of chroma follows, and is not looked at. */
static void test_planes(void)
{
	static const uint8_t nv12[] = { 10, 20, 30, 40, 50, 60, 70, 80, 99, 98, 97, 96 };
	const struct port_video_luma luma = { 0, 1, 4 };
	uint8_t pixels[PIXELS];

	CHECK(luma_is_whole(&luma, sizeof(nv12), WIDTH, HEIGHT));
	luma_take(nv12, &luma, WIDTH, HEIGHT, pixels);
	CHECK(memcmp(pixels, expected, PIXELS) == 0);
}

static void test_a_driver_that_says_nonsense(void)
{
	static const struct port_video_luma wrong[] = { { 0, 1, 3 }, { 0, 1, 0 }, { 1, 2, 7 }, { 0, 0, 8 } };

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		CHECK_THAT(!luma_is_whole(&wrong[i], 64, WIDTH, HEIGHT), "%zu", i);
}

static void test_dropped(void)
{
	CHECK_INT(luma_dropped(4, 5), 0);
	CHECK_INT(luma_dropped(4, 8), 3);
	CHECK_INT(luma_dropped(UINT32_MAX, 0), 0);
	CHECK_INT(luma_dropped(UINT32_MAX - 1, 1), 2);
	CHECK_INT(luma_dropped(0, 0), 0);
	CHECK_INT(luma_dropped(9, 0), 0);
}

int main(void)
{
	test_formats();
	test_planes();
	test_a_driver_that_says_nonsense();
	test_dropped();
	return check_result();
}
