/* SPDX-License-Identifier: Apache-2.0 */
/* From a real camera's frame to the grey pixels of a picture. Pure. */
#ifndef BW_LOOP_LUMA_H
#define BW_LOOP_LUMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "port/port_video.h"

/** Whether a frame has all its luma, and lines do not overlap. */
bool luma_is_whole(const struct port_video_luma *luma, size_t size_bytes, int32_t width_px, int32_t height_px);
/**
 * Take the luma of a whole frame, as it is, without the bytes that pad a line.
 *
 * @param pixels  receives width_px * height_px levels, rows from the top
 */
void luma_take(const uint8_t *frame, const struct port_video_luma *luma, int32_t width_px, int32_t height_px, uint8_t *pixels);
/** How many frames were dropped between two, by the driver's numbers, modulo 2^32; 0 of a driver that does not number them. */
static inline uint32_t luma_dropped(uint32_t before, uint32_t now)
{
	uint32_t further = now - before;

	return further && further <= INT32_MAX ? further - 1 : 0;
}

#endif
