/* SPDX-License-Identifier: Apache-2.0 */
/** What a V4L2 device says, and what becomes of it: the test stands in for the kernel's ioctl, a file of zeros for the device. */
#include <errno.h>
#include <linux/videodev2.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "../check.h"
#include "port/port_video.h"

enum { WIDTH = 64, HEIGHT = 48, FORMATS_MAX = 4, FRAME_BYTES = 1 << 14, BUFFERS = 4 };

/* The device. */
struct device {
	uint32_t capabilities, device_capabilities;
	uint32_t formats[FORMATS_MAX];
	uint32_t width, height, line_bytes, field; /* that it gives; 0: as asked */
	struct v4l2_fract period;                  /* likewise */
	bool has_no_rate, is_old_clock;
	unsigned long fails_at;
	int fails_by;
	int32_t exposure; /* 0: it does not say */
	int given;                /* buffers that it was given */
	struct v4l2_buffer next;  /* what VIDIOC_DQBUF gives */
};

static struct device device;

static const struct device good = { .capabilities = V4L2_CAP_VIDEO_CAPTURE | V4L2_CAP_STREAMING, .formats = { V4L2_PIX_FMT_MJPEG, V4L2_PIX_FMT_YUYV } };

static int set_format(struct v4l2_pix_format *pix)
{
	pix->width = device.width ? device.width : pix->width;
	pix->height = device.height ? device.height : pix->height;
	pix->field = device.field ? device.field : pix->field;
	pix->bytesperline = device.line_bytes ? device.line_bytes : pix->width * 2;
	return 0;
}

static int set_rate(struct v4l2_captureparm *capture)
{
	capture->capability = device.has_no_rate ? 0 : V4L2_CAP_TIMEPERFRAME;
	if (device.period.numerator)
		capture->timeperframe = device.period;
	return 0;
}

static int describe(struct v4l2_fmtdesc *described)
{
	if (described->index >= FORMATS_MAX || !device.formats[described->index])
		return -EINVAL;
	described->pixelformat = device.formats[described->index];
	return 0;
}

static uint32_t clock_flag(void)
{
	return device.is_old_clock ? V4L2_BUF_FLAG_TIMESTAMP_UNKNOWN : V4L2_BUF_FLAG_TIMESTAMP_MONOTONIC | V4L2_BUF_FLAG_TSTAMP_SRC_SOE;
}

static int describe_buffer(struct v4l2_buffer *buffer)
{
	buffer->flags = clock_flag();
	buffer->length = FRAME_BYTES;
	buffer->m.offset = 0;
	return 0;
}

static int take_buffer(struct v4l2_buffer *buffer)
{
	*buffer = device.next;
	return 0;
}

static int describe_device(struct v4l2_capability *capability)
{
	memset(capability->driver, 'd', sizeof(capability->driver)); /* without an end, as no driver should */
	memset(capability->card, 'c', sizeof(capability->card));
	capability->capabilities = device.capabilities;
	capability->device_caps = device.device_capabilities;
	return 0;
}

static int read_control(struct v4l2_control *control)
{
	if (control->id != V4L2_CID_EXPOSURE_ABSOLUTE || !device.exposure)
		return -EINVAL;
	control->value = device.exposure;
	return 0;
}

static int answer(unsigned long request, void *argument)
{
	if (request == device.fails_at)
		return -device.fails_by;
	switch (request) {
	case VIDIOC_QUERYCAP:
		return describe_device(argument);
	case VIDIOC_ENUM_FMT:
		return describe(argument);
	case VIDIOC_S_FMT:
		return set_format(&((struct v4l2_format *)argument)->fmt.pix);
	case VIDIOC_S_PARM:
		return set_rate(&((struct v4l2_streamparm *)argument)->parm.capture);
	case VIDIOC_QUERYBUF:
		return describe_buffer(argument);
	case VIDIOC_DQBUF:
		return take_buffer(argument);
	case VIDIOC_G_CTRL:
		return read_control(argument);
	case VIDIOC_QBUF:
		device.given++;
		return 0;
	default: /* VIDIOC_REQBUFS: as many as were asked for; VIDIOC_STREAMON */
		return 0;
	}
}

/* The port layer's calls come here: meson.build compiles it, and this file, with another name for ioctl. */
int ioctl(int file, unsigned long request, ...)
{
	va_list arguments;
	int err;

	(void)file;
	va_start(arguments, request);
	err = answer(request, va_arg(arguments, void *));
	va_end(arguments);
	errno = -err;
	return err ? -1 : 0;
}

static char path[] = "/tmp/bw-test-video-XXXXXX";

static int open_as(const struct device *is, struct port_video **video, struct port_video_found *found, char *reason)
{
	const struct port_video_asked asked = { WIDTH, HEIGHT, 25 };

	device = *is;
	return port_video_open(video, path, &asked, found, reason);
}

static void refuse(const struct device *is, int err, const char *expected)
{
	char reason[PORT_VIDEO_REASON_BYTES];
	struct port_video_found found;
	struct port_video *video;

	CHECK_INT(open_as(is, &video, &found, reason), err);
	CHECK_TEXT(reason, expected);
	CHECK(!video);
}

/* A device that is good but for one thing. */
#define BUT(...) (&(struct device){ .capabilities = good.capabilities, .formats = { V4L2_PIX_FMT_YUYV }, __VA_ARGS__ })

static void test_refusals(void)
{
	refuse(BUT(.fails_at = VIDIOC_QUERYCAP, .fails_by = ENOTTY), -EINVAL, "is no V4L2 device");
	refuse(BUT(.fails_at = VIDIOC_QUERYCAP, .fails_by = ENODEV), -ENODEV, "");
	refuse(&(struct device){ .capabilities = V4L2_CAP_STREAMING }, -EINVAL, "does not capture pictures of a single plane");
	refuse(&(struct device){ .capabilities = V4L2_CAP_VIDEO_CAPTURE }, -EINVAL, "does not stream into shared memory");
	/* Of a card with more than one device, what this one cannot do counts. */
	refuse(&(struct device){ .capabilities = good.capabilities | V4L2_CAP_DEVICE_CAPS, .device_capabilities = V4L2_CAP_STREAMING }, -EINVAL,
	       "does not capture pictures of a single plane");
	refuse(&(struct device){ .capabilities = good.capabilities, .formats = { V4L2_PIX_FMT_MJPEG } }, -EINVAL,
	       "has none of the formats GREY, YUYV, UYVY, NV12, YU12");
	refuse(BUT(.width = 80), -EINVAL, "gives 80x48 pixels, not 64x48");
	refuse(BUT(.height = 40), -EINVAL, "gives 64x40 pixels, not 64x48");
	refuse(BUT(.field = V4L2_FIELD_INTERLACED), -EINVAL, "gives interlaced pictures");
	refuse(BUT(.fails_at = VIDIOC_S_FMT, .fails_by = EBUSY), -EBUSY, "");
	refuse(BUT(.period = { 1001, 30000 }), -EINVAL, "gives 30000/1001 pictures a second, not 25");
	refuse(BUT(.has_no_rate = true), -EINVAL, "cannot be asked for a rate");
	refuse(BUT(.fails_at = VIDIOC_S_PARM, .fails_by = ENOTTY), -EINVAL, "cannot be asked for a rate");
	refuse(BUT(.is_old_clock = true), -EINVAL, "does not stamp its frames by CLOCK_MONOTONIC");
	refuse(BUT(.fails_at = VIDIOC_REQBUFS, .fails_by = EBUSY), -EBUSY, "");
}

static void test_what_is_found(void)
{
	struct device is = good;
	char reason[PORT_VIDEO_REASON_BYTES];
	struct port_video_found found;
	struct port_video *video;

	is.exposure = 156;
	is.line_bytes = 192;
	is.period = (struct v4l2_fract){ 40, 1000 }; /* 25 a second, not reduced */
	CHECK_INT(open_as(&is, &video, &found, reason), 0);
	CHECK_TEXT(found.pixel_format, "YUYV");
	CHECK_INT(found.luma.first_byte, 0);
	CHECK_INT(found.luma.step_bytes, 2);
	CHECK_INT(found.luma.line_bytes, 192);
	CHECK_INT(found.exposure_us, 15600);
	CHECK(found.is_stamped_at_start);
	CHECK_INT(strlen(found.driver), 16);
	CHECK_INT(strlen(found.card), 32);
	port_video_close(video);
	is.exposure = 0;
	is.formats[2] = V4L2_PIX_FMT_GREY; /* behind YUYV, and better */
	CHECK_INT(open_as(&is, &video, &found, reason), 0);
	CHECK_TEXT(found.pixel_format, "GREY");
	CHECK_INT(found.exposure_us, 0);
	port_video_close(video);
	is.formats[0] = V4L2_PIX_FMT_GREY; /* before it */
	is.formats[2] = V4L2_PIX_FMT_NV12;
	CHECK_INT(open_as(&is, &video, &found, reason), 0);
	CHECK_TEXT(found.pixel_format, "GREY");
	port_video_close(video);
}

static void test_frames(void)
{
	char reason[PORT_VIDEO_REASON_BYTES];
	struct port_video_found found;
	struct port_video_frame frame;
	struct port_video *video;

	CHECK_INT(open_as(&good, &video, &found, reason), 0);
	CHECK_INT(port_video_start(video), 0);
	CHECK_INT(device.given, BUFFERS);
	device.next = (struct v4l2_buffer){ .index = 2, .bytesused = FRAME_BYTES + 1, .flags = clock_flag() | V4L2_BUF_FLAG_ERROR,
					    .timestamp = { 5, 250000 }, .sequence = 4294967295 };
	CHECK_INT(port_video_next(video, 1000000, &frame), 0);
	CHECK_INT(frame.size_bytes, FRAME_BYTES); /* no more than is mapped, whatever the driver says */
	CHECK_INT(frame.captured_monotonic_ns, INT64_C(5250000000));
	CHECK_INT(frame.sequence, 4294967295);
	CHECK(frame.is_damaged);
	CHECK_INT(port_video_done(video, &frame), 0);
	CHECK_INT(device.given, BUFFERS + 1);
	device.next.flags = V4L2_BUF_FLAG_TIMESTAMP_UNKNOWN;
	CHECK_INT(port_video_next(video, 1000000, &frame), -EPROTO);
	device.next.flags = clock_flag();
	device.next.index = BUFFERS;
	CHECK_INT(port_video_next(video, 1000000, &frame), -EPROTO);
	device.fails_at = VIDIOC_DQBUF;
	device.fails_by = ENODEV;
	CHECK_INT(port_video_next(video, 1000000, &frame), -ENODEV);
	port_video_close(video);
}

int main(void)
{
	int file = mkstemp(path);

	CHECK(file >= 0 && !ftruncate(file, FRAME_BYTES));
	test_refusals();
	test_what_is_found();
	test_frames();
	close(file);
	unlink(path);
	return check_result();
}
