/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The four rings of a socket of AF_XDP, by which frames come from the kernel and go to it (linux/if_xdp.h; the kernel's
 * Documentation/networking/af_xdp.rst). The service has opened and bound the socket; here is what needs no privilege.
 */
#ifndef BW_ACCEL_RINGS_H
#define BW_ACCEL_RINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stackd_answer;

struct ring {
	uint32_t *producer, *consumer, *flags;
	void *entries; /* struct xdp_desc of receive and transmit, uint64_t addresses of fill and completion */
	uint32_t size, own; /* own: what was last written to or read from it */
	void *map;
	size_t map_bytes;
};

struct rings {
	int fd;
	uint8_t *memory, *joined; /* joined: a frame that came in several buffers */
	size_t memory_bytes;
	uint32_t frame_bytes;
	struct ring receive, transmit, fill, completion;
	uint64_t *spare; /* addresses of frames to send in */
	uint32_t spare_count;
	bool kick;       /* something waits to be taken by the kernel */
	uint64_t frames_in, frames_out, full; /* full: frames that had no room to be sent, and are lost */
};

/**
 * Map the rings and the memory, and give the kernel frames to receive in.
 *
 * @param fd     of AF_XDP, bound; the rings own it on success
 * @param memory descriptor of the memory of the frames; the caller's
 * @param hello  the service's answer: sizes
 * @return 0 or -errno
 */
int rings_open(struct rings *rings, int fd, int memory, const struct stackd_answer *hello);
void rings_close(struct rings *rings);

/** Whether a frame waits. */
bool rings_waiting(const struct rings *rings);
/** Hand frames that came to `take`, at most `most`; a frame is the rings' again when `take` returns. @return how many */
unsigned int rings_receive(struct rings *rings, void (*take)(const uint8_t *frame, size_t size_bytes), unsigned int most);
/** Put a frame of two parts where the kernel takes it at the next flush; one that has no room is lost and counted. */
void rings_send(struct rings *rings, const void *header, size_t header_bytes, const void *packet, size_t packet_bytes);
/** Make the kernel take what was put there. */
void rings_flush(struct rings *rings);
/** Whether frames are left that the kernel did not take. */
bool rings_unsent(const struct rings *rings);

#endif
