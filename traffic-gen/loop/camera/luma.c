/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/camera/luma.h"

bool luma_is_whole(const struct port_video_luma *luma, size_t size_bytes, int32_t width_px, int32_t height_px)
{
	size_t row_bytes = luma->first_byte + (size_t)(width_px - 1) * luma->step_bytes + 1; /* of a line, up to its last luma */

	return luma->step_bytes && luma->line_bytes >= row_bytes && size_bytes >= (size_t)(height_px - 1) * luma->line_bytes + row_bytes;
}

void luma_take(const uint8_t *frame, const struct port_video_luma *luma, int32_t width_px, int32_t height_px, uint8_t *pixels)
{
	for (size_t j = 0; j < (size_t)height_px; j++) {
		const uint8_t *from = frame + j * luma->line_bytes + luma->first_byte;

		for (size_t i = 0; i < (size_t)width_px; i++)
			*pixels++ = from[i * luma->step_bytes];
	}
}
