/* SPDX-License-Identifier: Apache-2.0 */
/* Port layer: a camera of the system's, whose pictures have a luma byte for each pixel. Linux alone: V4L2. */
#ifndef BW_PORT_VIDEO_H
#define BW_PORT_VIDEO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PORT_VIDEO_REASON_BYTES = 128 };

/* Where the luma is in a frame: that of column i and row j at first_byte + i * step_bytes + j * line_bytes. */
struct port_video_luma {
	uint32_t first_byte, step_bytes, line_bytes;
};

struct port_video_asked {
	int32_t width_px, height_px, pictures_per_s;
};

/* What the driver says of the device and of what it gives. */
struct port_video_found {
	char driver[20], card[36], pixel_format[5];
	bool is_stamped_at_start; /* the time stamp is of the exposure's start; else of the frame's end */
	int32_t exposure_us;      /* 0: it does not say */
	struct port_video_luma luma;
};

struct port_video_frame {
	const uint8_t *bytes;
	size_t size_bytes;
	int64_t captured_monotonic_ns; /* the driver's time stamp */
	uint32_t sequence;             /* the driver's, modulo 2^32: those that it dropped are counted */
	bool is_damaged;
	uint32_t index; /* of its buffer */
};

struct port_video;

/**
 * Open a camera and have it give what is asked, and nothing else.
 *
 * @param reason  PORT_VIDEO_REASON_BYTES; receives why the device does not do, or an empty text: the error says it
 * @return 0; -ENOTSUP: this system has none; -EINVAL: the reason says it; or -errno
 */
int port_video_open(struct port_video **video, const char *path, const struct port_video_asked *asked, struct port_video_found *found,
		    char *reason);
/** Begin. @return 0 or -errno */
int port_video_start(struct port_video *video);
/** Wait for the next frame, which is the caller's until port_video_done. @return 0; -EAGAIN: none came in time; or -errno, -ENODEV: it has gone */
int port_video_next(struct port_video *video, int64_t timeout_ns, struct port_video_frame *frame);
/** The frame's buffer is the driver's again. @return 0 or -errno */
int port_video_done(struct port_video *video, const struct port_video_frame *frame);
/** End; NULL does no harm. */
void port_video_close(struct port_video *video);

#endif
