/* SPDX-License-Identifier: Apache-2.0 */
/* What a tracker does with a place it has found: is it near an edge, and a box round it. Pure. */
#ifndef BW_LOOP_MARK_H
#define BW_LOOP_MARK_H

#include <stdbool.h>
#include <stdint.h>

#include "loop/camera/path.h"

/** Whether a place is within a margin of the picture's edge, or beyond it. @param margin_percent  of width and of height, 0..50 */
bool is_near_edge(int32_t width_px, int32_t height_px, struct place picture, int32_t margin_percent);
/** Draw a box's frame, a pixel wide, what of it is in the picture. @param half_px  from the centre to each side, not negative */
void draw_box(uint8_t *pixels, int32_t width_px, int32_t height_px, struct place centre, int32_t half_px, uint8_t level);

#endif
