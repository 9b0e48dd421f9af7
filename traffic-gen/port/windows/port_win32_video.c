/* SPDX-License-Identifier: Apache-2.0 */
/* Port layer for Windows: its cameras are not read. */
#include "port/port_video.h"

#include <errno.h>

int port_video_open(struct port_video **video, const char *path, const struct port_video_asked *asked, struct port_video_found *found,
		    char *reason)
{
	(void)path;
	(void)asked;
	(void)found;
	*video = NULL;
	*reason = '\0';
	return -ENOTSUP;
}

int port_video_start(struct port_video *video)
{
	(void)video;
	return -ENOTSUP;
}

int port_video_next(struct port_video *video, int64_t timeout_ns, struct port_video_frame *frame)
{
	(void)video;
	(void)timeout_ns;
	(void)frame;
	return -ENOTSUP;
}

int port_video_done(struct port_video *video, const struct port_video_frame *frame)
{
	(void)video;
	(void)frame;
	return -ENOTSUP;
}

void port_video_close(struct port_video *video)
{
	(void)video;
}
