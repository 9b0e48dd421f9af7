/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/tracker/edge_fit.h"

#include <stdbool.h>

#include "loop/camera/fixed.h"

/* Samples along a ray are a sixteenth of the radius apart: from 0.4 to 1.8 radii. An edge is where the mean of EDGE samples before
 * is most above that of as many behind. */
enum { RAYS = 32, RAYS_MIN = 8, SAMPLES = 23, FIRST_SIXTEENTHS = 6, EDGE = 4, ROUNDS = 5, DARK = 8 };
/* Samples surely in the disc, up to 0.7 radii, and those surely in the ring, from 1.2 to 1.4. */
enum { INSIDE = 6, AROUND_FIRST = 13, AROUND = 4 };

struct ray {
	int64_t cosine_q14, sine_q14;
	int64_t edge_q8; /* from the centre */
	int32_t strength;        /* of the edge: sum of EDGE samples before it less that behind it, in 1/256 level */
	int32_t inside, around;  /* means of samples that are in the disc, and in the ring, wherever the edge is */
	bool is_whole; /* all of it is in the picture */
	bool fits;
};

/* A level in 1/256, bilinear. The place is in the picture. */
static int32_t level_at(const struct grey *grey, int64_t x_q8, int64_t y_q8)
{
	int32_t x = (int32_t)(x_q8 / 256), y = (int32_t)(y_q8 / 256), across = (int32_t)(x_q8 % 256), down = (int32_t)(y_q8 % 256);
	const uint8_t *at = grey->pixels + (int64_t)y * grey->width_px + x;
	int32_t right = across ? 1 : 0, below = down ? grey->width_px : 0;

	return ((at[0] * (256 - across) + at[right] * across) * (256 - down) +
		(at[below] * (256 - across) + at[below + right] * across) * down) / 256;
}

static int32_t mean(const int32_t *levels, int count)
{
	int32_t sum = 0;

	for (int i = 0; i < count; i++)
		sum += levels[i];
	return sum / count;
}

static void cast(const struct grey *grey, struct place from, int64_t radius_q8, struct ray *ray)
{
	int32_t levels[SAMPLES], gains[SAMPLES] = { 0 }, best = EDGE;
	int64_t curvature, slope;

	ray->is_whole = ray->fits = false;
	for (int i = 0; i < SAMPLES; i++) {
		int64_t out_q8 = radius_q8 * (FIRST_SIXTEENTHS + i) / 16;
		int64_t x_q8 = from.x_q8 + floor_div(out_q8 * ray->cosine_q14, 1 << 14);
		int64_t y_q8 = from.y_q8 + floor_div(out_q8 * ray->sine_q14, 1 << 14);

		if (x_q8 < 0 || y_q8 < 0 || x_q8 > (grey->width_px - 1) * INT64_C(256) || y_q8 > (grey->height_px - 1) * INT64_C(256))
			return;
		levels[i] = level_at(grey, x_q8, y_q8);
	}
	ray->is_whole = true;
	ray->inside = mean(levels, INSIDE);
	ray->around = mean(levels + AROUND_FIRST, AROUND);
	for (int i = EDGE; i <= SAMPLES - EDGE; i++) {
		for (int k = 0; k < EDGE; k++)
			gains[i] += levels[i - 1 - k] - levels[i + k];
		if (gains[i] > gains[best])
			best = i;
	}
	if (best == EDGE || best == SAMPLES - EDGE || gains[best] <= 0)
		return;
	/* The top of a parabola through the best and its neighbours; edge i is between samples i - 1 and i. */
	curvature = 2 * (int64_t)gains[best] - gains[best - 1] - gains[best + 1];
	slope = gains[best + 1] - gains[best - 1];
	ray->edge_q8 = radius_q8 * (2 * (FIRST_SIXTEENTHS + best) - 1) / 32;
	if (curvature > 0)
		ray->edge_q8 += floor_div(radius_q8 * slope, 32 * curvature);
	ray->strength = gains[best];
	ray->fits = true;
}

/* Only edges count that are half as strong as the weakest of the strongest quarter: others are the texture's. */
static void leave_out_weak(struct ray *rays)
{
	int32_t strong = 0;

	for (int i = 0; i < RAYS; i++) {
		int stronger = 0;

		for (int k = 0; k < RAYS; k++)
			stronger += rays[k].fits && rays[k].strength > rays[i].strength;
		if (rays[i].fits && stronger >= RAYS / 4 - 1 && rays[i].strength > strong)
			strong = rays[i].strength;
	}
	for (int i = 0; i < RAYS; i++)
		rays[i].fits = rays[i].fits && 2 * rays[i].strength >= strong;
}

/* Least squares: by which shift of the centre the edges of rays that fit are a radius away. */
static bool shift_of(const struct ray *rays, int64_t radius_q8, struct place *shift)
{
	int64_t xx = 0, xy = 0, yy = 0, xe = 0, ye = 0, determinant;

	for (int i = 0; i < RAYS; i++) {
		int64_t c = rays[i].cosine_q14, s = rays[i].sine_q14, beyond = rays[i].edge_q8 - radius_q8;

		if (!rays[i].fits)
			continue;
		xx += c * c >> 14;
		xy += floor_div(c * s, 1 << 14);
		yy += s * s >> 14;
		xe += c * beyond;
		ye += s * beyond;
	}
	determinant = (xx * yy - xy * xy) >> 14;
	if (determinant < 1 << 11)
		return false;
	shift->x_q8 = (int32_t)floor_div(floor_div(xe, 1 << 7) * yy - floor_div(ye, 1 << 7) * xy, determinant * (1 << 7));
	shift->y_q8 = (int32_t)floor_div(floor_div(ye, 1 << 7) * xx - floor_div(xe, 1 << 7) * xy, determinant * (1 << 7));
	return true;
}

static void leave_out_far(struct ray *rays, int64_t radius_q8, struct place shift)
{
	for (int i = 0; i < RAYS; i++) {
		int64_t expected = radius_q8 + floor_div(shift.x_q8 * rays[i].cosine_q14 + shift.y_q8 * rays[i].sine_q14, 1 << 14);
		int64_t off = rays[i].edge_q8 - expected;

		rays[i].fits = rays[i].fits && (off < 0 ? -off : off) <= radius_q8 / 4 + 256;
	}
}

static int32_t quality_of(const struct ray *rays)
{
	int64_t whole = 0, fitting = 0, inside = 0, around = 0;

	for (int i = 0; i < RAYS; i++) {
		if (!rays[i].is_whole)
			continue;
		whole++;
		fitting += rays[i].fits;
		inside += rays[i].inside;
		around += rays[i].around;
	}
	if (fitting < RAYS_MIN || inside <= around)
		return 0;
	return (int32_t)(1000 * fitting * (inside - around) / (whole * (inside + whole * DARK * 256)));
}

struct edge_fit edge_fit(const struct grey *grey, struct place near, int64_t radius_q8)
{
	struct ray rays[RAYS] = { 0 };
	struct edge_fit fit = { .centre = near };

	for (uint32_t i = 0; i < RAYS; i++) {
		uint32_t angle = i * (UINT32_C(0x80000000) / (RAYS / 2));

		rays[i].cosine_q14 = floor_div(cosine_q30(angle), 1 << 16);
		rays[i].sine_q14 = floor_div(sine_q30(angle), 1 << 16);
	}
	for (int round = 0; round < ROUNDS; round++) {
		struct place shift;

		for (int i = 0; i < RAYS; i++)
			cast(grey, fit.centre, radius_q8, &rays[i]);
		leave_out_weak(rays);
		if (!shift_of(rays, radius_q8, &shift))
			return fit;
		leave_out_far(rays, radius_q8, shift);
		if (!shift_of(rays, radius_q8, &shift))
			return fit;
		fit.centre.x_q8 += (int32_t)clamp(shift.x_q8, -radius_q8 / 2, radius_q8 / 2);
		fit.centre.y_q8 += (int32_t)clamp(shift.y_q8, -radius_q8 / 2, radius_q8 / 2);
	}
	fit.quality = quality_of(rays);
	return fit;
}
