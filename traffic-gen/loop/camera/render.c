/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/camera/render.h"

#include "loop/camera/fixed.h"
#include "loop/camera/hash.h"

enum { INSTANTS = 8 }; /* of an exposure, evenly over it */

struct render_settings render_settings_default(uint64_t seed)
{
	return (struct render_settings){
		.seed = seed, .width_px = 320, .height_px = 240, .exposure_us = EXPOSURE_NOMINAL_US, .gain_q8 = 256, .noise_q8 = 768
	};
}

/* Between pixels of a texture, bilinear; beyond its border, the border. Places in 1/65536 pixel. */
static void texture_row(const struct world *world, int64_t x_q16, int64_t step_q16, int64_t y_q16, int32_t width_px, uint8_t *row)
{
	int64_t end_q16 = (world->width_px - 1) * INT64_C(65536) - 1, y = clamp(y_q16, 0, (world->height_px - 1) * INT64_C(65536) - 1);
	const uint8_t *upper = world->texture + (y / 65536) * world->width_px, *lower = upper + world->width_px;
	uint32_t down = (uint32_t)(y % 65536) / 256;

	for (int32_t i = 0; i < width_px; i++, x_q16 += step_q16) {
		uint32_t x = (uint32_t)clamp(x_q16, 0, end_q16), at = x / 65536, across = x % 65536 / 256;
		uint32_t left = upper[at] * (256 - down) + lower[at] * down, right = upper[at + 1] * (256 - down) + lower[at + 1] * down;

		row[i] = (uint8_t)((left * (256 - across) + right * across + 32768) >> 16);
	}
}

/* How much of a pixel a disc covers, 0..256: by how far the pixel's centre is from the edge. Squares are in 1/65536 pixel. */
static int32_t covered(int64_t distance_square, int64_t radius_q8)
{
	int64_t inside = radius_q8 * radius_q8 - distance_square;

	if (inside >= radius_q8 * 256)
		return 256;
	if (inside <= -radius_q8 * 256)
		return 0;
	return (int32_t)((inside + radius_q8 * 256) / (2 * radius_q8));
}

static int32_t mixed(int32_t below, int32_t above, int32_t share)
{
	return share == 256 ? above : (below * (256 - share) + above * share + 128) / 256;
}

/* A target as one picture shows it. */
struct seen {
	struct place at[INSTANTS];
	int64_t disc_q8, ring_q8; /* radii */
	int32_t left, right, top, bottom; /* what it may touch; right and bottom are not part of it */
	int32_t disc, ring;
};

static struct seen see(const struct target *target, const struct render_settings *settings, const struct pose *pose, int64_t t_ns)
{
	struct seen seen = { .disc = target->disc, .ring = target->ring, .disc_q8 = (int64_t)target->radius_q8 * pose->zoom_q8 / 256 };
	struct place low = { INT32_MAX, INT32_MAX }, high = { INT32_MIN, INT32_MIN };
	int64_t reach_q8;

	seen.ring_q8 = seen.disc_q8 * 3 / 2;
	for (int i = 0; i < INSTANTS; i++) {
		int64_t instant_ns = settings->exposure_us * INT64_C(1000) * (INT64_C(2) * i + 1) / INSTANTS / 2;
		struct place at = pose_to_picture(pose, settings->width_px, settings->height_px, path_at(&target->path, t_ns + instant_ns));

		seen.at[i] = at;
		low = (struct place){ at.x_q8 < low.x_q8 ? at.x_q8 : low.x_q8, at.y_q8 < low.y_q8 ? at.y_q8 : low.y_q8 };
		high = (struct place){ at.x_q8 > high.x_q8 ? at.x_q8 : high.x_q8, at.y_q8 > high.y_q8 ? at.y_q8 : high.y_q8 };
	}
	reach_q8 = seen.ring_q8 + 256;
	seen.left = (int32_t)clamp(floor_div(low.x_q8 - reach_q8, 256), 0, settings->width_px);
	seen.right = (int32_t)clamp(floor_div(high.x_q8 + reach_q8, 256) + 1, 0, settings->width_px);
	seen.top = (int32_t)clamp(floor_div(low.y_q8 - reach_q8, 256), 0, settings->height_px);
	seen.bottom = (int32_t)clamp(floor_div(high.y_q8 + reach_q8, 256) + 1, 0, settings->height_px);
	return seen;
}

static void target_row(const struct seen *seen, int32_t y, uint8_t *row)
{
	for (int32_t x = seen->left; x < seen->right; x++) {
		int32_t sum = INSTANTS / 2;

		for (int i = 0; i < INSTANTS; i++) {
			int64_t right_q8 = x * INT64_C(256) - seen->at[i].x_q8, down_q8 = y * INT64_C(256) - seen->at[i].y_q8;
			int64_t square = right_q8 * right_q8 + down_q8 * down_q8;
			int32_t level = mixed(row[x], seen->ring, covered(square, seen->ring_q8));

			sum += mixed(level, seen->disc, covered(square, seen->disc_q8));
		}
		row[x] = (uint8_t)(sum / INSTANTS);
	}
}

/* Exposure and noise of the sensor. Four bytes of a random word make a sum that is nearly normal: 510 ± 147.8; two to a word. */
static void expose_row(const struct render_settings *settings, uint64_t seed, uint32_t y, uint8_t *row)
{
	uint32_t scale_q16 = (uint32_t)clamp(settings->exposure_us * INT64_C(256) * settings->gain_q8 / EXPOSURE_NOMINAL_US, 0, 1 << 22);
	int64_t noise_q16 = settings->noise_q8 * INT64_C(65536) / 37837;
	uint64_t bits = 0, place = (uint64_t)y << 32;

	for (int32_t x = 0; x < settings->width_px; x++, bits >>= 32) {
		int64_t deviation, level_q16;

		if (x % 2 == 0)
			bits = hash_at(seed, place++);
		deviation = (int64_t)((bits & 255) + (bits >> 8 & 255) + (bits >> 16 & 255) + (bits >> 24 & 255)) - 510;
		level_q16 = (int64_t)row[x] * scale_q16 + deviation * noise_q16 + 32768;
		row[x] = level_q16 < 0 ? 0 : level_q16 >= INT64_C(255) * 65536 ? 255 : (uint8_t)(level_q16 / 65536);
	}
}

void render(const struct world *world, const struct render_settings *settings, const struct pose *pose, int64_t t_ns, uint32_t number,
	    uint8_t *pixels)
{
	int64_t step_q16 = (INT64_C(1) << 24) / pose->zoom_q8;
	int64_t left_q16 = pose->x_q8 * INT64_C(256) - (settings->width_px - 1) * step_q16 / 2;
	int64_t top_q16 = pose->y_q8 * INT64_C(256) - (settings->height_px - 1) * step_q16 / 2;
	uint64_t seed = hash_at(settings->seed, number);
	struct seen seen[WORLD_TARGETS_MAX];

	for (int32_t i = 0; i < world->targets; i++)
		seen[i] = see(&world->target[i], settings, pose, t_ns);
	for (int32_t y = 0; y < settings->height_px; y++) {
		uint8_t *row = pixels + (int64_t)y * settings->width_px;

		texture_row(world, left_q16, step_q16, top_q16 + y * step_q16, settings->width_px, row);
		for (int32_t i = 0; i < world->targets; i++)
			if (y >= seen[i].top && y < seen[i].bottom)
				target_row(&seen[i], y, row);
		expose_row(settings, seed, (uint32_t)y, row);
	}
}
