/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/tracker/mark.h"

#include "loop/camera/fixed.h"

static bool is_near_end(int32_t at_q8, int32_t side_px, int32_t margin_percent)
{
	int64_t end_q8 = (side_px - 1) * INT64_C(256), margin_q8 = end_q8 * margin_percent / 100;

	return at_q8 < margin_q8 || at_q8 > end_q8 - margin_q8;
}

bool is_near_edge(int32_t width_px, int32_t height_px, struct place picture, int32_t margin_percent)
{
	return is_near_end(picture.x_q8, width_px, margin_percent) || is_near_end(picture.y_q8, height_px, margin_percent);
}

void draw_box(uint8_t *pixels, int32_t width_px, int32_t height_px, struct place centre, int32_t half_px, uint8_t level)
{
	int64_t x = floor_div(centre.x_q8 + INT64_C(128), 256), y = floor_div(centre.y_q8 + INT64_C(128), 256);
	int64_t left = x - half_px, right = x + half_px, top = y - half_px, bottom = y + half_px;

	for (int64_t row = clamp(top, 0, height_px); row <= clamp(bottom, -1, height_px - 1); row++) {
		bool is_side = row == top || row == bottom;

		for (int64_t column = clamp(left, 0, width_px); column <= clamp(right, -1, width_px - 1); column++)
			if (is_side || column == left || column == right)
				pixels[row * width_px + column] = level;
	}
}
