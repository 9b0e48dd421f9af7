/* SPDX-License-Identifier: Apache-2.0 */
/* Port layer for Linux: a camera by V4L2, its frames in memory that driver and program share. */
#define _GNU_SOURCE
#include "port/port_video.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/videodev2.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/time_units.h"

enum { BUFFERS = 4, BUFFERS_MIN = 2, EXPOSURE_UNIT_US = 100 };

struct port_video {
	int file;
	uint32_t count;
	struct {
		void *bytes;
		size_t size_bytes;
	} buffers[VIDEO_MAX_FRAME];
};

/* Formats with eight bits of luma in their first plane, the best first. */
static const struct {
	uint32_t format;
	uint32_t first_byte, step_bytes;
} formats[] = {
	{ V4L2_PIX_FMT_GREY, 0, 1 }, { V4L2_PIX_FMT_YUYV, 0, 2 },   { V4L2_PIX_FMT_UYVY, 1, 2 },
	{ V4L2_PIX_FMT_NV12, 0, 1 }, { V4L2_PIX_FMT_YUV420, 0, 1 },
};

enum { FORMATS = sizeof(formats) / sizeof(formats[0]) };

static int control(const struct port_video *video, unsigned long request, void *argument)
{
	int result;

	do
		result = ioctl(video->file, request, argument);
	while (result && errno == EINTR);
	return result ? -errno : 0;
}

#define REFUSE(reason, ...) (snprintf((reason), PORT_VIDEO_REASON_BYTES, __VA_ARGS__), -EINVAL)

static int check_device(const struct port_video *video, struct port_video_found *found, char *reason)
{
	struct v4l2_capability capability = { 0 };
	uint32_t has;
	int err = control(video, VIDIOC_QUERYCAP, &capability);

	if (err == -ENOTTY || err == -EINVAL)
		return REFUSE(reason, "is no V4L2 device");
	if (err)
		return err;
	has = capability.capabilities & V4L2_CAP_DEVICE_CAPS ? capability.device_caps : capability.capabilities;
	if (!(has & V4L2_CAP_VIDEO_CAPTURE))
		return REFUSE(reason, "does not capture pictures of a single plane");
	if (!(has & V4L2_CAP_STREAMING))
		return REFUSE(reason, "does not stream into shared memory");
	snprintf(found->driver, sizeof(found->driver), "%.*s", (int)sizeof(capability.driver), (const char *)capability.driver);
	snprintf(found->card, sizeof(found->card), "%.*s", (int)sizeof(capability.card), (const char *)capability.card);
	return 0;
}

/* Return the place in formats of the best one that the device has, or FORMATS. */
static size_t best_format(const struct port_video *video)
{
	struct v4l2_fmtdesc described = { .type = V4L2_BUF_TYPE_VIDEO_CAPTURE };
	size_t best = FORMATS;

	for (; !control(video, VIDIOC_ENUM_FMT, &described); described.index++)
		for (size_t i = 0; i < best; i++)
			if (formats[i].format == described.pixelformat)
				best = i;
	return best;
}

static int choose_format(const struct port_video *video, const struct port_video_asked *asked, struct port_video_found *found, char *reason)
{
	size_t chosen = best_format(video);
	struct v4l2_format format = { .type = V4L2_BUF_TYPE_VIDEO_CAPTURE };
	struct v4l2_pix_format *pix = &format.fmt.pix;
	int err;

	if (chosen == FORMATS)
		return REFUSE(reason, "has none of the formats GREY, YUYV, UYVY, NV12, YU12");
	pix->width = (uint32_t)asked->width_px;
	pix->height = (uint32_t)asked->height_px;
	pix->pixelformat = formats[chosen].format;
	pix->field = V4L2_FIELD_NONE;
	err = control(video, VIDIOC_S_FMT, &format);
	if (err)
		return err;
	if (pix->width != (uint32_t)asked->width_px || pix->height != (uint32_t)asked->height_px)
		return REFUSE(reason, "gives %ux%u pixels, not %dx%d", pix->width, pix->height, asked->width_px, asked->height_px);
	if (pix->pixelformat != formats[chosen].format)
		return REFUSE(reason, "gives another format than the one of its list that was asked");
	if (pix->field != V4L2_FIELD_NONE)
		return REFUSE(reason, "gives interlaced pictures");
	for (size_t i = 0; i < 4; i++)
		found->pixel_format[i] = (char)(pix->pixelformat >> (8 * i) & 0xff);
	found->pixel_format[4] = '\0';
	found->luma = (struct port_video_luma){ formats[chosen].first_byte, formats[chosen].step_bytes, pix->bytesperline };
	return 0;
}

static int choose_rate(const struct port_video *video, int32_t pictures_per_s, char *reason)
{
	struct v4l2_streamparm parameters = { .type = V4L2_BUF_TYPE_VIDEO_CAPTURE };
	struct v4l2_captureparm *capture = &parameters.parm.capture;
	const struct v4l2_fract *found = &capture->timeperframe;
	int err;

	capture->timeperframe = (struct v4l2_fract){ 1, (uint32_t)pictures_per_s };
	err = control(video, VIDIOC_S_PARM, &parameters);
	if (err == -ENOTTY || (!err && (!(capture->capability & V4L2_CAP_TIMEPERFRAME) || !found->numerator)))
		return REFUSE(reason, "cannot be asked for a rate");
	if (err)
		return err;
	if ((uint64_t)found->numerator * (uint32_t)pictures_per_s != found->denominator)
		return REFUSE(reason, "gives %u/%u pictures a second, not %d", found->denominator, found->numerator, pictures_per_s);
	return 0;
}

static bool is_monotonic(const struct v4l2_buffer *buffer)
{
	return (buffer->flags & V4L2_BUF_FLAG_TIMESTAMP_MASK) == V4L2_BUF_FLAG_TIMESTAMP_MONOTONIC;
}

static int map_buffers(struct port_video *video, struct port_video_found *found, char *reason)
{
	struct v4l2_requestbuffers request = { .count = BUFFERS, .type = V4L2_BUF_TYPE_VIDEO_CAPTURE, .memory = V4L2_MEMORY_MMAP };
	int err = control(video, VIDIOC_REQBUFS, &request);

	if (err)
		return err;
	if (request.count < BUFFERS_MIN || request.count > VIDEO_MAX_FRAME)
		return -ENOMEM;
	for (uint32_t i = 0; i < request.count; i++) {
		struct v4l2_buffer buffer = { .index = i, .type = request.type, .memory = request.memory };
		void *bytes;

		err = control(video, VIDIOC_QUERYBUF, &buffer);
		if (err)
			return err;
		if (!is_monotonic(&buffer))
			return REFUSE(reason, "does not stamp its frames by CLOCK_MONOTONIC");
		found->is_stamped_at_start = (buffer.flags & V4L2_BUF_FLAG_TSTAMP_SRC_MASK) == V4L2_BUF_FLAG_TSTAMP_SRC_SOE;
		bytes = mmap(NULL, buffer.length, PROT_READ | PROT_WRITE, MAP_SHARED, video->file, (off_t)buffer.m.offset);
		if (bytes == MAP_FAILED)
			return -errno;
		video->buffers[i].bytes = bytes;
		video->buffers[i].size_bytes = buffer.length;
		video->count = i + 1;
	}
	return 0;
}

/* What the device says; 0: it does not. */
static int32_t read_exposure_us(const struct port_video *video)
{
	struct v4l2_control exposure = { .id = V4L2_CID_EXPOSURE_ABSOLUTE };

	if (control(video, VIDIOC_G_CTRL, &exposure) || exposure.value <= 0 || exposure.value > INT32_MAX / EXPOSURE_UNIT_US)
		return 0;
	return exposure.value * EXPOSURE_UNIT_US;
}

static int set_up(struct port_video *video, const struct port_video_asked *asked, struct port_video_found *found, char *reason)
{
	int err = check_device(video, found, reason);

	if (!err)
		err = choose_format(video, asked, found, reason);
	if (!err)
		err = choose_rate(video, asked->pictures_per_s, reason);
	if (!err)
		err = map_buffers(video, found, reason);
	if (!err)
		found->exposure_us = read_exposure_us(video);
	return err;
}

int port_video_open(struct port_video **video, const char *path, const struct port_video_asked *asked, struct port_video_found *found,
		    char *reason)
{
	struct port_video *made = calloc(1, sizeof(*made));
	int err;

	*video = NULL;
	*reason = '\0';
	if (!made)
		return -ENOMEM;
	made->file = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	err = made->file < 0 ? -errno : set_up(made, asked, found, reason);
	if (err) {
		port_video_close(made);
		return err;
	}
	*video = made;
	return 0;
}

static int give(const struct port_video *video, uint32_t index)
{
	struct v4l2_buffer buffer = { .index = index, .type = V4L2_BUF_TYPE_VIDEO_CAPTURE, .memory = V4L2_MEMORY_MMAP };

	return control(video, VIDIOC_QBUF, &buffer);
}

int port_video_start(struct port_video *video)
{
	int type = V4L2_BUF_TYPE_VIDEO_CAPTURE;

	for (uint32_t i = 0; i < video->count; i++) {
		int err = give(video, i);

		if (err)
			return err;
	}
	return control(video, VIDIOC_STREAMON, &type);
}

int port_video_next(struct port_video *video, int64_t timeout_ns, struct port_video_frame *frame)
{
	struct v4l2_buffer buffer = { .type = V4L2_BUF_TYPE_VIDEO_CAPTURE, .memory = V4L2_MEMORY_MMAP };
	struct timespec timeout = { .tv_sec = (time_t)(timeout_ns / NS_PER_S), .tv_nsec = (long)(timeout_ns % NS_PER_S) };
	struct pollfd one = { .fd = video->file, .events = POLLIN };
	int err, ready = ppoll(&one, 1, &timeout, NULL);

	if (ready < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	if (ready == 0)
		return -EAGAIN;
	err = control(video, VIDIOC_DQBUF, &buffer); /* of a device that has gone: -ENODEV */
	if (err)
		return err == -EAGAIN && !(one.revents & POLLIN) ? -EIO : err;
	if (buffer.index >= video->count || !is_monotonic(&buffer))
		return -EPROTO;
	*frame = (struct port_video_frame){
		.bytes = video->buffers[buffer.index].bytes,
		.size_bytes = buffer.bytesused < video->buffers[buffer.index].size_bytes ? buffer.bytesused : video->buffers[buffer.index].size_bytes,
		.captured_monotonic_ns = (int64_t)buffer.timestamp.tv_sec * NS_PER_S + (int64_t)buffer.timestamp.tv_usec * NS_PER_US,
		.sequence = buffer.sequence,
		.is_damaged = buffer.flags & V4L2_BUF_FLAG_ERROR,
		.index = buffer.index,
	};
	return 0;
}

int port_video_done(struct port_video *video, const struct port_video_frame *frame)
{
	return give(video, frame->index);
}

void port_video_close(struct port_video *video)
{
	if (!video)
		return;
	for (uint32_t i = 0; i < video->count; i++)
		munmap(video->buffers[i].bytes, video->buffers[i].size_bytes);
	if (video->file >= 0)
		close(video->file);
	free(video);
}
