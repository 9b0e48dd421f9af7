/* SPDX-License-Identifier: Apache-2.0 */
/* A message over frames of RTDiP: each begins with which message it is of, and where in it; one without data asks (rtdip_flow.h). Pure. */
#ifndef BW_RTDIP_FRAGMENT_H
#define BW_RTDIP_FRAGMENT_H

#include <stdint.h>

#include "base/big_endian.h"
#include "rtdip.h"

enum {
	RTDIP_FRAGMENT_HEADER_BYTES = 8, /* message, offset: 32 bits each, network order */
	RTDIP_FRAGMENT_MAX_BYTES = RTDIP_DATA_MAX_BYTES - RTDIP_FRAGMENT_HEADER_BYTES, /* of a message in a frame, where the MTU has room */
};

struct rtdip_fragment {
	uint32_t message; /* counted by the stream's sender, modulo 2^32; one that was given up counts */
	uint32_t offset;  /* of the first byte in the message */
};

static inline void rtdip_fragment_pack(const struct rtdip_fragment *fragment, uint8_t bytes[RTDIP_FRAGMENT_HEADER_BYTES])
{
	big_endian_put(bytes, 4, fragment->message);
	big_endian_put(bytes + 4, 4, fragment->offset);
}

static inline struct rtdip_fragment rtdip_fragment_parse(const uint8_t bytes[RTDIP_FRAGMENT_HEADER_BYTES])
{
	return (struct rtdip_fragment){ (uint32_t)big_endian_get(bytes, 4), (uint32_t)big_endian_get(bytes + 4, 4) };
}

#endif
