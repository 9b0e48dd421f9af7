/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/tracker/track.h"

#include <stdlib.h>

#include "loop/camera/picture.h"
#include "loop/camera/world.h"
#include "loop/tracker/edge_fit.h"

enum { CANDIDATES = 6 };

/* A box of pixels: right and bottom are not part of it. */
struct box {
	int32_t left, top, right, bottom;
};

struct candidate {
	int32_t x, y, score;
};

const char *tracker_make(struct tracker *tracker, int32_t radius_px, int32_t width_px, int32_t height_px)
{
	*tracker = (struct tracker){ .radius_px = radius_px, .width_px = width_px, .height_px = height_px };
	if (radius_px < TARGET_RADIUS_MIN_PX || radius_px > TARGET_RADIUS_MAX_PX)
		return "a target's radius has 4 to 64 pixels";
	if (width_px < PICTURE_SIDE_MIN_PX || width_px > PICTURE_SIDE_MAX_PX || height_px < PICTURE_SIDE_MIN_PX ||
	    height_px > PICTURE_SIDE_MAX_PX)
		return "a picture has 32 to 2048 pixels a side";
	tracker->sums = malloc((size_t)(width_px + 1) * (size_t)(height_px + 1) * sizeof(*tracker->sums));
	return tracker->sums ? NULL : "no memory for pictures of this size";
}

void tracker_free(struct tracker *tracker)
{
	free(tracker->sums);
	tracker->sums = NULL;
}

/* Of each pixel the sum of all those above and left of it (Crow 1984): a box's sum is then that of four. */
static void add_up(struct tracker *tracker, const uint8_t *pixels)
{
	size_t stride = (size_t)tracker->width_px + 1;
	uint32_t *above = tracker->sums;

	for (size_t x = 0; x < stride; x++)
		above[x] = 0;
	for (int32_t y = 0; y < tracker->height_px; y++, above += stride, pixels += tracker->width_px) {
		uint32_t *row = above + stride, sum = 0;

		row[0] = 0;
		for (size_t x = 1; x < stride; x++) {
			sum += pixels[x - 1];
			row[x] = above[x] + sum;
		}
	}
}

/* What of a square is in the picture. */
static struct box square(const struct tracker *tracker, int32_t x, int32_t y, int32_t half)
{
	return (struct box){ (int32_t)clamp(x - half, 0, tracker->width_px), (int32_t)clamp(y - half, 0, tracker->height_px),
			     (int32_t)clamp(x + half + 1, 0, tracker->width_px), (int32_t)clamp(y + half + 1, 0, tracker->height_px) };
}

static int64_t area(struct box box)
{
	return (int64_t)(box.right - box.left) * (box.bottom - box.top);
}

static int64_t sum_of(const struct tracker *tracker, struct box box)
{
	const uint32_t *top = tracker->sums + (size_t)box.top * ((size_t)tracker->width_px + 1);
	const uint32_t *bottom = tracker->sums + (size_t)box.bottom * ((size_t)tracker->width_px + 1);

	return (int64_t)bottom[box.right] - bottom[box.left] - top[box.right] + top[box.left];
}

/* By how much the middle is brighter than what is round it, in 1/256 level; INT32_MIN: too little of either is in the picture. */
static int32_t score_at(const struct tracker *tracker, int32_t x, int32_t y, int32_t radius)
{
	struct box middle = square(tracker, x, y, radius * 3 / 4), inner = square(tracker, x, y, radius);
	struct box outer = square(tracker, x, y, radius + (radius + 1) / 3 + 1);
	int64_t middle_area = area(middle), round_area = area(outer) - area(inner);
	int64_t side = radius * 3 / 4 * 2 + 1;

	if (4 * middle_area < side * side || !round_area)
		return INT32_MIN;
	return (int32_t)(sum_of(tracker, middle) * 256 / middle_area -
			 (sum_of(tracker, outer) - sum_of(tracker, inner)) * 256 / round_area);
}

/* Keep the best, of which no two are within a radius of each other; the best first. */
static void consider(struct candidate *candidates, struct candidate next, int32_t radius)
{
	int at = CANDIDATES - 1;

	for (int i = 0; i < CANDIDATES; i++) {
		const struct candidate *each = &candidates[i];

		if (each->score == INT32_MIN)
			break;
		if (abs(each->x - next.x) <= radius && abs(each->y - next.y) <= radius) {
			if (each->score >= next.score)
				return;
			at = i;
			break;
		}
	}
	if (candidates[at].score >= next.score)
		return;
	for (; at > 0 && candidates[at - 1].score < next.score; at--)
		candidates[at] = candidates[at - 1];
	candidates[at] = next;
}

struct track track(struct tracker *tracker, const uint8_t *pixels, const struct pose *pose)
{
	const struct grey grey = { pixels, tracker->width_px, tracker->height_px };
	int64_t radius_q8 = (int64_t)tracker->radius_px * pose->zoom_q8;
	int32_t radius = (int32_t)((radius_q8 + 128) / 256), step = radius / 4 > 1 ? radius / 4 : 1;
	struct candidate candidates[CANDIDATES];
	struct track track = { 0 };

	if (radius_q8 < 640 || 2 * radius > (tracker->width_px < tracker->height_px ? tracker->width_px : tracker->height_px))
		return track;
	for (int i = 0; i < CANDIDATES; i++)
		candidates[i].score = INT32_MIN;
	add_up(tracker, pixels);
	for (int32_t y = -radius / 2; y <= tracker->height_px + radius / 2; y += step)
		for (int32_t x = -radius / 2; x <= tracker->width_px + radius / 2; x += step)
			consider(candidates, (struct candidate){ x, y, score_at(tracker, x, y, radius) }, radius);
	for (int i = 0; i < CANDIDATES && candidates[i].score > 0; i++) {
		struct edge_fit fit = edge_fit(&grey, (struct place){ candidates[i].x * 256, candidates[i].y * 256 }, radius_q8);

		if (fit.quality > track.quality) {
			track.quality = fit.quality;
			track.picture = fit.centre;
		}
	}
	track.found = track.quality >= TRACK_QUALITY_MIN;
	if (!track.found)
		track.picture = (struct place){ 0, 0 };
	else
		track.world = pose_to_world(pose, tracker->width_px, tracker->height_px, track.picture);
	return track;
}
