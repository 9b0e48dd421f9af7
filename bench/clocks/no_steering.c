/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Before ClockBound's daemon: it asks the kernel to steer the system's clock, is told that this was done, and no clock is touched.
 * Its own time, which it publishes, does not depend on that one.
 */
#include <sys/timex.h>

int ntp_adjtime(struct timex *request)
{
	return request->modes & ADJ_SETOFFSET ? TIME_ERROR : TIME_OK; /* as the kernel: unsynchronised after a step */
}
