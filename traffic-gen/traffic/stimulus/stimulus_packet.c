/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 0  "BWSR"          16  number
 * 4  version, 1      20  0
 * 5  0, 1: response  24  sent, TAI in ns
 * 6  0               32  ns from receiving to sending, of a response
 * 8  size in bytes   40  0
 * 12 count
 */
#include "traffic/stimulus/stimulus_packet.h"

#include <errno.h>
#include <string.h>

#include "base/big_endian.h"

enum { VERSION = 1 };

static const uint8_t magic[4] = { 'B', 'W', 'S', 'R' };

void stimulus_pack(const struct stimulus *stimulus, uint8_t wire[static STIMULUS_BYTES_MIN])
{
	memset(wire, 0, STIMULUS_BYTES_MIN);
	memcpy(wire, magic, sizeof(magic));
	wire[4] = VERSION;
	wire[5] = stimulus->is_response;
	big_endian_put(wire + 8, 4, stimulus->size_bytes);
	big_endian_put(wire + 12, 4, stimulus->count);
	big_endian_put(wire + 16, 4, stimulus->number);
	big_endian_put(wire + 24, 8, (uint64_t)stimulus->sent_tai_ns);
	big_endian_put(wire + 32, 8, (uint64_t)stimulus->sent_after_ns);
}

int stimulus_parse(const uint8_t wire[static STIMULUS_BYTES_MIN], struct stimulus *stimulus)
{
	if (memcmp(wire, magic, sizeof(magic)) != 0 || wire[4] != VERSION || wire[5] > 1 || big_endian_get(wire + 6, 2) ||
	    big_endian_get(wire + 20, 4) || big_endian_get(wire + 40, 8))
		return -EINVAL;
	*stimulus = (struct stimulus){
		.is_response = wire[5],
		.size_bytes = (uint32_t)big_endian_get(wire + 8, 4),
		.count = (uint32_t)big_endian_get(wire + 12, 4),
		.number = (uint32_t)big_endian_get(wire + 16, 4),
		.sent_tai_ns = (int64_t)big_endian_get(wire + 24, 8),
		.sent_after_ns = (int64_t)big_endian_get(wire + 32, 8),
	};
	if (stimulus->size_bytes < STIMULUS_BYTES_MIN || stimulus->size_bytes > STIMULUS_BYTES_MAX ||
	    stimulus->number >= stimulus->count || stimulus->sent_after_ns < 0 ||
	    (!stimulus->is_response && stimulus->sent_after_ns))
		return -EINVAL;
	return 0;
}
