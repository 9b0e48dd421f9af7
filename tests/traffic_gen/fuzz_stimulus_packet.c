/* SPDX-License-Identifier: Apache-2.0 */
/** Fuzz target: what comes over a connection of stimulus and response. What is taken is the same again once it is packed. */
#include <string.h>

#include "fuzz.h"
#include "traffic/stimulus/stimulus_packet.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t wire[STIMULUS_BYTES_MIN];
	struct stimulus found;

	if (size < STIMULUS_BYTES_MIN || stimulus_parse(data, &found))
		return 0;
	promise(found.size_bytes >= STIMULUS_BYTES_MIN && found.size_bytes <= STIMULUS_BYTES_MAX && found.number < found.count);
	promise(found.is_response || !found.sent_after_ns);
	stimulus_pack(&found, wire);
	promise(memcmp(wire, data, STIMULUS_BYTES_MIN) == 0);
	return 0;
}
