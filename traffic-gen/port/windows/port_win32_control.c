/* SPDX-License-Identifier: Apache-2.0 */
#include "port/windows/port_win32_control.h"

#include <string.h>

#include "base/time_units.h"

enum { ALIGNMENT = 8, LEVEL_AT = 8, TYPE_AT = 12 };

void control_put_id(uint8_t control[CONTROL_ID_BYTES], uint32_t id)
{
	uint64_t length = CONTROL_HEADER_BYTES + sizeof(id);
	int32_t level = CONTROL_SOL_SOCKET, type = CONTROL_SO_TIMESTAMP_ID;

	memset(control, 0, CONTROL_ID_BYTES);
	memcpy(control, &length, sizeof(length));
	memcpy(control + LEVEL_AT, &level, sizeof(level));
	memcpy(control + TYPE_AT, &type, sizeof(type));
	memcpy(control + CONTROL_HEADER_BYTES, &id, sizeof(id));
}

bool control_find_stamp(const uint8_t *control, size_t size_bytes, uint64_t *ticks)
{
	size_t left = size_bytes;

	while (left >= CONTROL_HEADER_BYTES) {
		uint64_t length, padded;
		int32_t level, type;

		memcpy(&length, control, sizeof(length));
		memcpy(&level, control + LEVEL_AT, sizeof(level));
		memcpy(&type, control + TYPE_AT, sizeof(type));
		if (length < CONTROL_HEADER_BYTES || length > left)
			return false;
		if (level == CONTROL_SOL_SOCKET && type == CONTROL_SO_TIMESTAMP) {
			if (length != CONTROL_HEADER_BYTES + sizeof(*ticks))
				return false;
			memcpy(ticks, control + CONTROL_HEADER_BYTES, sizeof(*ticks));
			return true;
		}
		padded = (length + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
		if (padded >= left)
			return false;
		control += padded;
		left -= padded;
	}
	return false;
}

int64_t control_monotonic_ns(uint64_t ticks, uint64_t ticks_per_s)
{
	if (!ticks_per_s || ticks_per_s > (uint64_t)INT64_MAX / NS_PER_S || ticks / ticks_per_s >= (uint64_t)INT64_MAX / NS_PER_S)
		return 0;
	return (int64_t)(ticks / ticks_per_s) * NS_PER_S + (int64_t)(ticks % ticks_per_s * (uint64_t)NS_PER_S / ticks_per_s);
}
