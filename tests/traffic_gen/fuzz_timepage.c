/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Fuzz target: a page of the time service that anybody may have written. It is refused, or all that is calculated from it lies
 * within its limits.
 */
#include <string.h>

#include "fuzz.h"
#include "timeservice/page.h"

static void look_at(const struct timepage_line *line, uint64_t ticks)
{
	uint64_t distance = ticks - line->base_ticks;

	if (line->state != TIMEPAGE_SYNCHRONISED && line->state != TIMEPAGE_HOLDOVER)
		return;
	if (distance >= timepage_usable_ticks(line))
		return;
	promise(timepage_utc_ns(line, ticks) >= line->base_utc_ns);
	promise(timepage_utc_ns(line, ticks) <= TIMEPAGE_UTC_MAX_NS);
	promise(timepage_bound_ns(line, ticks) >= line->low_ns && timepage_bound_ns(line, ticks) >= line->high_ns);
	promise(timepage_u_ns(line, ticks) <= timepage_bound_ns(line, ticks));
	promise(distance == 0 || timepage_utc_ns(line, ticks) >= timepage_utc_ns(line, ticks - 1));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct timepage_image image;
	static struct timepage_status status;
	static const struct timepage_identity here = { .counter_kind = 1 };
	uint8_t *bytes = (uint8_t *)&image;
	struct timepage_line line;
	uint32_t sequence;
	const char *why;
	uint64_t ticks;

	if (size < sizeof(ticks))
		return 0;
	memcpy(&ticks, data, sizeof(ticks));
	data += sizeof(ticks);
	size -= sizeof(ticks);
	memset(bytes, 0, sizeof(image));
	memcpy(bytes, data, size < sizeof(image) ? size : sizeof(image));
	timepage_image_check(&image, &here, &why);
	promise(why != NULL);
	if (timepage_line_read(&image.line, &line, &sequence) == 0) {
		look_at(&line, ticks);
		look_at(&line, line.base_ticks);
		if (timepage_usable_ticks(&line))
			look_at(&line, line.base_ticks + ticks % timepage_usable_ticks(&line));
		look_at(&line, line.settled_ticks);
		look_at(&line, line.usable_until_ticks - 1);
		promise(timepage_state_name(line.state) && timepage_reason_name(line.reason));
	}
	if (timepage_status_read(&image.status, &status) == 0) {
		promise(memchr(status.version, 0, sizeof(status.version)) != NULL);
		promise(status.server_count <= TIMEPAGE_SERVERS && status.history_count <= TIMEPAGE_HISTORY);
	}
	return 0;
}
