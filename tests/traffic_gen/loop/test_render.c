/* SPDX-License-Identifier: Apache-2.0 */
/** Pictures of the synthetic camera: the same bytes on every machine, exposure, noise and blur as they are asked for. */
#include <math.h>
#include <stdlib.h>

#include "../check.h"
#include "loop/camera/render.h"

enum { WIDTH = 320, HEIGHT = 240, PIXELS = WIDTH * HEIGHT };

static const int64_t s_ns = INT64_C(1000000000), ms_ns = 1000000;
static uint8_t pixels[PIXELS], others[PIXELS];

static struct pose looking_at(struct place place, int32_t zoom_q8)
{
	return (struct pose){ place.x_q8, place.y_q8, zoom_q8 };
}

/* Three that were looked at, and their CRC-32. */
static void test_the_same_bytes_on_every_machine(void)
{
	static const struct known {
		enum path_kind kind;
		int32_t speed_px_s, zoom_q8, exposure_us;
		int64_t t_s;
		uint32_t crc;
	} known[] = {
		{ PATH_CONSTANT, 120, 256, 10000, 1, 0x0cab3b20 },
		{ PATH_CIRCLE, 400, 700, 25000, 3600, 0x98a0f296 },
		{ PATH_WANDER, 60, 128, 2000, INT64_C(2592000), 0xd688363d },
	};

	for (uint32_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct world_settings settings = world_settings_default(66 + i, known[i].kind, known[i].speed_px_s * 256);
		struct render_settings camera = render_settings_default(7);
		struct world world;
		struct place at;
		struct pose pose;

		CHECK(!world_make(&world, &settings));
		camera.exposure_us = known[i].exposure_us;
		camera.gain_q8 = 256 * EXPOSURE_NOMINAL_US / known[i].exposure_us;
		at = path_at(&world.target[0].path, known[i].t_s * s_ns);
		pose = looking_at((struct place){ at.x_q8 + 8000, at.y_q8 - 5000 }, known[i].zoom_q8);
		render(&world, &camera, &pose, known[i].t_s * s_ns, i, pixels);
		CHECK_THAT(picture_crc32(0, pixels, PIXELS) == known[i].crc, "picture %" PRIu32 " has the CRC-32 0x%08" PRIx32, i,
			   picture_crc32(0, pixels, PIXELS));
		memset(others, 0xee, sizeof(others));
		render(&world, &camera, &pose, known[i].t_s * s_ns, i, others);
		CHECK(memcmp(pixels, others, PIXELS) == 0);
		world_free(&world);
	}
}

static struct world make_world(int32_t targets, enum path_kind kind, int32_t speed_px_s)
{
	struct world_settings settings = world_settings_default(21, kind, speed_px_s * 256);
	struct world world;

	settings.targets = targets;
	CHECK(!world_make(&world, &settings));
	return world;
}

static void mean_and_deviation(const uint8_t *levels, const uint8_t *from, double *mean, double *deviation)
{
	double sum = 0, squares = 0;

	for (int i = 0; i < PIXELS; i++) {
		double value = levels[i] - (from ? from[i] : 0);

		sum += value;
		squares += value * value;
	}
	*mean = sum / PIXELS;
	*deviation = sqrt(squares / PIXELS - *mean * *mean);
}

static void test_noise_has_its_deviation_and_is_each_pictures_own(void)
{
	struct world world = make_world(0, PATH_STILL, 0);
	struct render_settings camera = render_settings_default(5);
	const struct pose pose = { 1024 * 256, 768 * 256, 256 };
	double mean, deviation;
	static uint8_t clean[PIXELS];

	camera.noise_q8 = 0;
	render(&world, &camera, &pose, 0, 1, clean);
	render(&world, &camera, &pose, 0, 2, pixels);
	CHECK(memcmp(clean, pixels, PIXELS) == 0);
	camera.noise_q8 = 5 * 256;
	render(&world, &camera, &pose, 0, 1, pixels);
	mean_and_deviation(pixels, clean, &mean, &deviation);
	CHECK_THAT(fabs(mean) < 0.1, "noise has the mean %f", mean);
	CHECK_THAT(fabs(deviation - 5) < 0.1, "noise has the deviation %f", deviation);
	render(&world, &camera, &pose, 0, 2, others);
	mean_and_deviation(pixels, others, &mean, &deviation);
	CHECK_THAT(fabs(deviation - 5 * sqrt(2)) < 0.15, "two pictures differ by %f", deviation);
	camera.seed++;
	render(&world, &camera, &pose, 0, 2, pixels);
	mean_and_deviation(pixels, others, &mean, &deviation);
	CHECK_THAT(fabs(deviation - 5 * sqrt(2)) < 0.15, "two seeds differ by %f", deviation);
	world_free(&world);
}

static void test_a_longer_exposure_is_brighter(void)
{
	struct world world = make_world(0, PATH_STILL, 0);
	struct render_settings camera = render_settings_default(5);
	const struct pose pose = { 1024 * 256, 768 * 256, 256 };
	double one, half, deviation;

	render(&world, &camera, &pose, 0, 1, pixels);
	mean_and_deviation(pixels, NULL, &one, &deviation);
	CHECK_THAT(one > 60 && one < 150 && deviation > 8, "the texture has %f +- %f", one, deviation);
	camera.exposure_us /= 2;
	render(&world, &camera, &pose, 0, 1, pixels);
	mean_and_deviation(pixels, NULL, &half, &deviation);
	CHECK_THAT(fabs(half - one / 2) < 0.5, "half the exposure has %f of %f", half, one);
	camera.exposure_us = PICTURE_EXPOSURE_MAX_US;
	render(&world, &camera, &pose, 0, 1, pixels);
	CHECK_INT(pixels[PIXELS / 2], 255);
	world_free(&world);
}

/* Of pixels that a target makes brighter: their centre, and their extent along the rows. */
static double centre_of_bright(double *width)
{
	double sum = 0, sum_x = 0, left = WIDTH, right = 0;

	for (int i = 0; i < PIXELS; i++) {
		if (pixels[i] < 190)
			continue;
		sum++;
		sum_x += i % WIDTH;
		left = i % WIDTH < left ? i % WIDTH : left;
		right = i % WIDTH > right ? i % WIDTH : right;
	}
	*width = right - left + 1;
	return sum_x / sum;
}

static void test_the_disc_is_where_its_path_is_in_the_middle_of_the_exposure(void)
{
	struct world world = make_world(1, PATH_CONSTANT, 200);
	struct render_settings camera = render_settings_default(5);
	double sharp, blurred;

	camera.noise_q8 = 0;
	for (int i = 0; i < 20; i++) {
		int64_t t_ns = 300 * ms_ns * i;
		struct place at;
		struct pose pose;

		camera.exposure_us = EXPOSURE_NOMINAL_US;
		camera.gain_q8 = 256;
		at = path_at(&world.target[0].path, render_middle_ns(&camera, t_ns));
		pose = looking_at((struct place){ at.x_q8 - 20 * 256, at.y_q8 }, 512);
		render(&world, &camera, &pose, t_ns, 0, pixels);
		CHECK_THAT(fabs(centre_of_bright(&sharp) - (159.5 + 40)) < 0.3, "%d: the disc is at %f", i, centre_of_bright(&sharp));
		CHECK_THAT(fabs(sharp - 48) < 4, "%d: the disc is %f wide", i, sharp);
	}
	camera.exposure_us = 40000;
	camera.gain_q8 = 64;
	render(&world, &camera, &(struct pose){ world.target[0].path.start.x_q8, world.target[0].path.start.y_q8, 512 }, 0, 0, pixels);
	centre_of_bright(&blurred);
	CHECK_THAT(blurred < sharp, "blurred, what is full bright is %f wide; sharp, %f", blurred, sharp);
	world_free(&world);
}

/* An exposure over the end of the rest: of the eight instants the first ones see the target rest, the others see it move. */
static void test_a_target_that_rests_first(void)
{
	const int64_t still_ns = 700 * ms_ns, exposure_ns = 40 * ms_ns;
	struct world world = make_world(1, PATH_CONSTANT, 400);
	struct path resting = world.target[0].path, moving = resting;
	struct render_settings camera = render_settings_default(5);
	struct pose pose = looking_at(resting.start, 512);
	double rests, begins, moves;

	resting.still_ns = still_ns;
	camera.noise_q8 = 0;
	camera.exposure_us = 40000;
	camera.gain_q8 = 64;
	for (int64_t behind_ns = 0; behind_ns < 400 * ms_ns; behind_ns += 100 * ms_ns) {
		world.target[0].path = moving;
		render(&world, &camera, &pose, behind_ns, 3, others);
		world.target[0].path = resting;
		render(&world, &camera, &pose, still_ns + behind_ns, 3, pixels);
		CHECK(memcmp(pixels, others, PIXELS) == 0);
	}
	render(&world, &camera, &pose, 0, 0, others);
	render(&world, &camera, &pose, still_ns - exposure_ns, 0, pixels);
	CHECK(memcmp(pixels, others, PIXELS) == 0);
	centre_of_bright(&rests);
	render(&world, &camera, &pose, still_ns - exposure_ns / 2, 0, pixels);
	centre_of_bright(&begins);
	render(&world, &camera, &pose, still_ns, 0, pixels);
	centre_of_bright(&moves);
	CHECK_THAT(moves < begins && begins < rests, "full bright at rest %f wide, over its end %f, behind it %f", rests, begins, moves);
	world_free(&world);
}

static void test_zoom_makes_larger_what_is_seen(void)
{
	struct world world = make_world(1, PATH_STILL, 0);
	struct render_settings camera = render_settings_default(5);
	struct place at = path_at(&world.target[0].path, 0);

	camera.noise_q8 = 0;
	for (int32_t zoom_q8 = 128; zoom_q8 <= 1024; zoom_q8 *= 2) {
		struct pose pose = looking_at(at, zoom_q8);
		double width;

		render(&world, &camera, &pose, 0, 0, pixels);
		CHECK(fabs(centre_of_bright(&width) - 159.5) < 0.3);
		CHECK_THAT(fabs(width - 24.0 * zoom_q8 / 256) <= 2, "at zoom %d the disc is %f wide", (int)zoom_q8, width);
	}
	world_free(&world);
}

static void test_worlds_that_are_refused(void)
{
	struct world_settings settings = world_settings_default(1, PATH_CIRCLE, 25600);
	struct world world;

	settings.width_px = 255;
	CHECK_TEXT(world_make(&world, &settings), "a world has 256 to 8192 pixels a side");
	settings.width_px = 8193;
	CHECK_TEXT(world_make(&world, &settings), "a world has 256 to 8192 pixels a side");
	settings = world_settings_default(1, PATH_CIRCLE, 25600);
	settings.targets = 9;
	CHECK_TEXT(world_make(&world, &settings), "a world has 0 to 8 targets");
	settings = world_settings_default(1, PATH_CIRCLE, 255);
	CHECK_TEXT(world_make(&world, &settings), "a target's speed has 1 to 4000 pixels a second");
	settings = world_settings_default(1, PATH_CIRCLE, 25600);
	settings.target[0].radius_px = 65;
	CHECK_TEXT(world_make(&world, &settings), "a target's radius has 4 to 64 pixels");
}

int main(void)
{
	test_the_same_bytes_on_every_machine();
	test_noise_has_its_deviation_and_is_each_pictures_own();
	test_a_longer_exposure_is_brighter();
	test_the_disc_is_where_its_path_is_in_the_middle_of_the_exposure();
	test_a_target_that_rests_first();
	test_zoom_makes_larger_what_is_seen();
	test_worlds_that_are_refused();
	return check_result();
}
