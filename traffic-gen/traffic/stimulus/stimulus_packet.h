/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of stimulus and response, over TCP: as long as each other, the time of sending in each. Pure. */
#ifndef BW_STIMULUS_PACKET_H
#define BW_STIMULUS_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { STIMULUS_BYTES_MIN = 48, STIMULUS_BYTES_MAX = 65536 };

/** What either message says; behind it zeros up to its size. */
struct stimulus {
	bool is_response;
	uint32_t size_bytes;  /* of this message, STIMULUS_BYTES_MIN..STIMULUS_BYTES_MAX */
	uint32_t count;       /* of stimuli that there will be */
	uint32_t number;      /* from 0; a response has that of its stimulus */
	int64_t sent_tai_ns;  /* by the sender's clock */
	int64_t sent_after_ns; /* of a response: from its stimulus' stamp of receiving to that of its sending; else 0 */
};

/** Write the first STIMULUS_BYTES_MIN bytes. */
void stimulus_pack(const struct stimulus *stimulus, uint8_t wire[static STIMULUS_BYTES_MIN]);
/** Read them. @return 0, or -EINVAL: it is none */
int stimulus_parse(const uint8_t wire[static STIMULUS_BYTES_MIN], struct stimulus *stimulus);

#endif
