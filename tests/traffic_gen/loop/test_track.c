/* SPDX-License-Identifier: Apache-2.0 */
/** The tracker against the camera's truth, on seeds that it was not made with; its box, and what is near an edge. */
#include <math.h>

#include "../check.h"
#include "../random.h"
#include "base/big_endian.h"
#include "loop/camera/render.h"
#include "loop/tracker/mark.h"
#include "loop/tracker/track.h"

enum { WIDTH = 320, HEIGHT = 240, WORLDS = 9, PICTURES = 40 };

static const int64_t day_ns = INT64_C(86400) * 1000000000;
static uint8_t pixels[WIDTH * HEIGHT];
static struct tracker tracker;

/* Zoom 0.5 to 4, exposures of 4 to 20 ms, half to one and a half of the right brightness, noise of 0 to 10 levels. */
static struct render_settings some_camera(struct random *random)
{
	struct render_settings camera = render_settings_default(random_bits(random));

	camera.exposure_us = (int32_t)random_between(random, 4000, 20000);
	camera.gain_q8 = (int32_t)(random_between(random, 128, 384) * EXPOSURE_NOMINAL_US / camera.exposure_us);
	camera.noise_q8 = (int32_t)random_between(random, 0, 2560);
	return camera;
}

/* A pose in which a place of the world is at most so far from the picture's centre: in 1/256 pixel of the picture. */
static struct pose some_pose(struct random *random, struct place at, int32_t right_q8, int32_t down_q8)
{
	int32_t zoom_q8 = (int32_t)random_between(random, 128, 1024);
	int64_t x_q8 = at.x_q8 + random_between(random, -right_q8, right_q8) * 256 / zoom_q8;
	int64_t y_q8 = at.y_q8 + random_between(random, -down_q8, down_q8) * 256 / zoom_q8;

	return (struct pose){ (int32_t)x_q8, (int32_t)y_q8, zoom_q8 };
}

static void test_against_the_truth(int32_t targets)
{
	struct random random = { .state = 660000 + (uint64_t)targets };
	double squares = 0, worst = 0;
	int found = 0, out = 0;
	uint32_t places_crc = 0;
	uint8_t place[8];

	for (int i = 0; i < WORLDS; i++) {
		uint64_t seed = random_bits(&random);
		int32_t speed_px_s = (int32_t)random_between(&random, 20, 400);
		struct world_settings settings = world_settings_default(seed, (enum path_kind)(1 + i % 3), speed_px_s * 256);
		struct world world;

		settings.width_px = 1024;
		settings.height_px = 768;
		settings.targets = targets;
		CHECK(!world_make(&world, &settings));
		for (uint32_t number = 0; number < PICTURES; number++) {
			struct render_settings camera = some_camera(&random);
			int64_t t_ns = random_between(&random, 0, 10 * day_ns);
			struct place at = targets ? path_at(&world.target[0].path, render_middle_ns(&camera, t_ns)) :
						    (struct place){ 500 * 256, 400 * 256 };
			struct pose pose = some_pose(&random, at, 158 * 256, 118 * 256);
			struct place truth = pose_to_picture(&pose, WIDTH, HEIGHT, at);
			struct track result;
			double off;

			render(&world, &camera, &pose, t_ns, number, pixels);
			result = track(&tracker, pixels, &pose);
			found += result.found;
			CHECK_INT(result.found, result.quality >= TRACK_QUALITY_MIN);
			if (!result.found)
				continue;
			big_endian_put(place, 4, (uint32_t)result.picture.x_q8);
			big_endian_put(place + 4, 4, (uint32_t)result.picture.y_q8);
			places_crc = picture_crc32(places_crc, place, sizeof(place));
			off = hypot(result.picture.x_q8 - truth.x_q8, result.picture.y_q8 - truth.y_q8) / 256;
			squares += off * off;
			worst = off > worst ? off : worst;
			out += fabs(truth.x_q8 - 159.5 * 256) > (160 - 12 * pose.zoom_q8 / 256.0) * 256;
			CHECK(hypot(result.world.x_q8 - at.x_q8, result.world.y_q8 - at.y_q8) * pose.zoom_q8 / 65536 <= off + 0.1);
		}
		world_free(&world);
	}
	CHECK_INT(found, targets ? WORLDS * PICTURES : 0);
	if (!targets)
		return;
	fprintf(stderr, "%d pictures, %d of them with a disc cut off: %.3f px rms, %.3f at most\n", found, out,
		sqrt(squares / found), worst);
	CHECK_THAT(places_crc == 0xa6856b77, "the places have the CRC-32 0x%08" PRIx32 ": those of another machine", places_crc);
	CHECK(out > 20);
	CHECK_THAT(sqrt(squares / found) <= 2, "centres are off by %f px rms", sqrt(squares / found));
}

/* A blind tracker, or one that sees a target in everything, is none. */
static void test_flat_and_random_pictures_have_none(void)
{
	struct random random = { .state = 5 };
	const struct pose pose = { 0, 0, 256 };

	for (int level = 0; level < 256; level += 51) {
		memset(pixels, level, sizeof(pixels));
		CHECK(!track(&tracker, pixels, &pose).found);
	}
	for (int i = 0; i < 20; i++) {
		for (size_t k = 0; k < sizeof(pixels); k++)
			pixels[k] = (uint8_t)random_bits(&random);
		CHECK(!track(&tracker, pixels, &pose).found);
	}
}

static void test_a_target_outside_is_not_found(void)
{
	struct world_settings settings = world_settings_default(31, PATH_STILL, 0);
	struct render_settings camera = render_settings_default(3);
	struct world world;
	struct pose pose;

	CHECK(!world_make(&world, &settings));
	pose = (struct pose){ world.target[0].path.start.x_q8 + 185 * 256, world.target[0].path.start.y_q8, 256 };
	render(&world, &camera, &pose, 0, 0, pixels);
	CHECK(!track(&tracker, pixels, &pose).found);
	world_free(&world);
}

static void test_a_disc_too_small_or_too_large_is_not_looked_for(void)
{
	struct tracker small;

	CHECK(!tracker_make(&small, 4, WIDTH, HEIGHT));
	CHECK_INT(track(&small, pixels, &(struct pose){ 0, 0, 64 }).quality, 0);
	CHECK_INT(track(&small, pixels, &(struct pose){ 0, 0, 4096 }).found, 0);
	tracker_free(&small);
	CHECK_TEXT(tracker_make(&small, 3, WIDTH, HEIGHT), "a target's radius has 4 to 64 pixels");
	CHECK_TEXT(tracker_make(&small, 12, 31, HEIGHT), "a picture has 32 to 2048 pixels a side");
}

static void test_near_an_edge(void)
{
	CHECK(!is_near_edge(101, 201, (struct place){ 50 * 256, 100 * 256 }, 20));
	CHECK(!is_near_edge(101, 201, (struct place){ 20 * 256, 40 * 256 }, 20));
	CHECK(is_near_edge(101, 201, (struct place){ 20 * 256 - 1, 100 * 256 }, 20));
	CHECK(!is_near_edge(101, 201, (struct place){ 80 * 256, 160 * 256 }, 20));
	CHECK(is_near_edge(101, 201, (struct place){ 50 * 256, 160 * 256 + 1 }, 20));
	CHECK(is_near_edge(101, 201, (struct place){ -1, 100 * 256 }, 0));
	CHECK(!is_near_edge(101, 201, (struct place){ 0, 100 * 256 }, 0));
}

/* Draws into a picture with room round it. @return how many pixels of the picture have the level; none of the room may. */
static int drawn(struct place centre, int32_t half_px)
{
	enum { SIDE_X = 64, SIDE_Y = 48, SIZE = SIDE_X * SIDE_Y };
	static uint8_t before_and_behind[SIZE + SIZE + SIZE];
	uint8_t *picture = &before_and_behind[SIZE];
	int inside = 0;

	memset(before_and_behind, 0, sizeof(before_and_behind));
	draw_box(picture, SIDE_X, SIDE_Y, centre, half_px, 200);
	for (int i = 0; i < SIZE; i++) {
		inside += picture[i] == 200;
		CHECK(!before_and_behind[i] && !picture[SIZE + i]);
	}
	return inside;
}

static void test_a_box(void)
{
	memset(pixels, 0, sizeof(pixels));
	draw_box(pixels, WIDTH, HEIGHT, (struct place){ 100 * 256 + 127, 50 * 256 - 128 }, 2, 200);
	for (int y = 47; y <= 53; y++)
		for (int x = 97; x <= 103; x++) {
			int right = x > 100 ? x - 100 : 100 - x, down = y > 50 ? y - 50 : 50 - y;

			CHECK_INT(pixels[y * WIDTH + x], (right > down ? right : down) == 2 ? 200 : 0);
		}
	CHECK_INT(drawn((struct place){ 30 * 256, 20 * 256 }, 0), 1);
	CHECK_INT(drawn((struct place){ 0, 0 }, 5), 11);
	CHECK_INT(drawn((struct place){ 63 * 256, 47 * 256 }, 5), 11);
	CHECK_INT(drawn((struct place){ -7 * 256, 20 * 256 }, 5), 0);
	CHECK_INT(drawn((struct place){ 30 * 256, 20 * 256 }, 1000), 0);
	CHECK_INT(drawn((struct place){ INT32_MAX, INT32_MIN }, 1000), 0);
}

int main(void)
{
	CHECK(!tracker_make(&tracker, TARGET_RADIUS_PX, WIDTH, HEIGHT));
	test_against_the_truth(1);
	test_against_the_truth(0);
	test_flat_and_random_pictures_have_none();
	test_a_target_outside_is_not_found();
	test_a_disc_too_small_or_too_large_is_not_looked_for();
	test_near_an_edge();
	test_a_box();
	tracker_free(&tracker);
	return check_result();
}
