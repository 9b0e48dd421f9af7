/* SPDX-License-Identifier: Apache-2.0 */
#include "frame.h"

#include <errno.h>
#include <stdio.h>

#include "base/big_endian.h"

void rtdip_pack(const struct rtdip_header *header, uint8_t bytes[RTDIP_HEADER_BYTES])
{
	big_endian_put(bytes, 2, header->destination_port);
	bytes[2] = header->priority;
	bytes[3] = RTDIP_VERSION;
	big_endian_put(bytes + 4, 2, header->length_bytes);
	big_endian_put(bytes + 6, 2, header->source_port);
	big_endian_put(bytes + 8, 4, header->sequence);
}

int rtdip_parse(const uint8_t *bytes, uint32_t payload_bytes, struct rtdip_header *header)
{
	struct rtdip_header read;

	if (payload_bytes < RTDIP_HEADER_BYTES)
		return -EMSGSIZE;
	read = (struct rtdip_header){
		.destination_port = (uint16_t)big_endian_get(bytes, 2),
		.priority = bytes[2],
		.length_bytes = (uint16_t)big_endian_get(bytes + 4, 2),
		.source_port = (uint16_t)big_endian_get(bytes + 6, 2),
		.sequence = (uint32_t)big_endian_get(bytes + 8, 4),
	};
	if (bytes[3] != RTDIP_VERSION || read.priority >= RTDIP_PRIORITIES || read.length_bytes > RTDIP_DATA_MAX_BYTES ||
	    read.destination_port == 0)
		return -EBADMSG;
	if (read.length_bytes > payload_bytes - RTDIP_HEADER_BYTES)
		return -EMSGSIZE;
	*header = read;
	return 0;
}

int rtdip_parse_mac(const char *text, uint8_t mac[RTDIP_MAC_BYTES])
{
	unsigned int parts[RTDIP_MAC_BYTES];
	int used = 0;

	if (sscanf(text, "%2x:%2x:%2x:%2x:%2x:%2x%n", &parts[0], &parts[1], &parts[2], &parts[3], &parts[4], &parts[5], &used) !=
	    RTDIP_MAC_BYTES)
		return -EINVAL;
	for (int i = 0; i < RTDIP_MAC_BYTES; i++)
		mac[i] = (uint8_t)parts[i];
	return used;
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
