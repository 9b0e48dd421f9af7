/* SPDX-License-Identifier: Apache-2.0 */
#include "frame.h"

#include <errno.h>

static void put16(uint8_t *bytes, uint32_t value)
{
	bytes[0] = (uint8_t)(value >> 8);
	bytes[1] = (uint8_t)value;
}

static uint16_t get16(const uint8_t *bytes)
{
	return (uint16_t)(bytes[0] << 8 | bytes[1]);
}

void rtdip_pack(const struct rtdip_header *header, uint8_t bytes[RTDIP_HEADER_BYTES])
{
	put16(bytes, header->destination_port);
	bytes[2] = header->priority;
	bytes[3] = RTDIP_VERSION;
	put16(bytes + 4, header->length_bytes);
	put16(bytes + 6, header->source_port);
	put16(bytes + 8, header->sequence >> 16);
	put16(bytes + 10, header->sequence);
}

int rtdip_parse(const uint8_t *bytes, uint32_t payload_bytes, struct rtdip_header *header)
{
	struct rtdip_header read;

	if (payload_bytes < RTDIP_HEADER_BYTES)
		return -EMSGSIZE;
	read = (struct rtdip_header){
		.destination_port = get16(bytes),
		.priority = bytes[2],
		.length_bytes = get16(bytes + 4),
		.source_port = get16(bytes + 6),
		.sequence = (uint32_t)get16(bytes + 8) << 16 | get16(bytes + 10),
	};
	if (bytes[3] != RTDIP_VERSION || read.priority >= RTDIP_PRIORITIES || read.length_bytes > RTDIP_DATA_MAX_BYTES ||
	    read.destination_port == 0)
		return -EBADMSG;
	if (read.length_bytes > payload_bytes - RTDIP_HEADER_BYTES)
		return -EMSGSIZE;
	*header = read;
	return 0;
}

const char *rtdip_priority_name(enum rtdip_priority priority)
{
	static const char *const names[RTDIP_PRIORITIES] = { "high", "medium", "low" };

	return names[priority];
}

const char *rtdip_count_name(enum rtdip_count count)
{
	static const char *const names[RTDIP_COUNTS] = { "delivered", "short", "malformed", "no_port", "full" };

	return names[count];
}
