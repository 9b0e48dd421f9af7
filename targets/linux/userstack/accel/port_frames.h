/* SPDX-License-Identifier: Apache-2.0 */
/* Frames between the rings and the stack: what comes, and what goes. */
#ifndef BW_ACCEL_FRAMES_H
#define BW_ACCEL_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "neighbours.h"

struct rings;
struct stackd_answer;

/** Begin; the parameters are those of rings_open(), but that the descriptor stays the caller's. @return 0 or -errno */
int frames_begin(int packets, int memory, const struct stackd_answer *hello);
/** Forget the rings, whose descriptor the caller closes. */
void frames_end(void);
/** The descriptor that came with frames_begin(), -1: none. */
int frames_fd(void);
const struct rings *frames_rings(void);

/** From now on each frame is stamped when it is taken out of the ring. */
void frames_stamp(void);
/** Whether a frame waits. */
bool frames_waiting(void);
/** Give the stack what waits, for a tenth of a millisecond from `now_us` at most. */
void frames_take(uint64_t now_us);
void frames_send(const uint8_t mac[NEIGHBOUR_MAC_BYTES], const uint8_t *packet, size_t packet_bytes);
void frames_flush(void);
/** When what the kernel did not take is tried again; UINT64_MAX: all is taken. */
uint64_t frames_again_us(void);

#endif
