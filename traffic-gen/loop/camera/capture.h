/* SPDX-License-Identifier: Apache-2.0 */
/* What pictures of both cameras have in common, the synthetic one's and a real one's. */
#ifndef BW_LOOP_CAPTURE_H
#define BW_LOOP_CAPTURE_H

#include "loop/camera/camera.h"

/** A picture is there: its event. */
void capture_event(uint32_t number);
/** Put a picture into the queue. @param wire  room of the queue's, with the pixels behind the header @param header  but for pixels_crc */
void capture_queue(struct camera *camera, struct picture_header *header, uint8_t *wire);

#endif
