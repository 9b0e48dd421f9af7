/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Fuzz target: a datagram that comes to a STAMP reflector, and to a sender. A reply is as long as its request, gives it back, and
 * is no request itself; of what follows the packet only flags of TLVs change.
 */
#include <string.h>

#include "fuzz.h"
#include "traffic/roundtrip/stamp_packet.h"

#define SECONDS_2026 UINT64_C(0xeec00000) /* since 1900 */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *packet = malloc(size ? size : 1); /* exactly as long: what is read or written beyond it is noticed */
	struct stamp_request request, again;
	struct stamp_reply reply;

	promise(packet != NULL);
	memcpy(packet, data, size);
	stamp_reply_parse(packet, size, &reply);
	if (stamp_request_parse(packet, size, &request) == 0) {
		stamp_reflect(packet, size, request.sequence + 1, SECONDS_2026 << 32);
		stamp_reply_set_sent(packet, SECONDS_2026 << 32 | 5);
		promise(stamp_request_parse(packet, size, &again) != 0);
		promise(stamp_reply_parse(packet, size, &reply) == 0);
		promise(reply.sequence == request.sequence + 1 && reply.ssid == request.ssid && reply.format == request.format);
		promise(reply.sender_sequence == request.sequence && reply.sender_sent == request.sent);
		promise(reply.sender_format == request.format && reply.sent - reply.received == 5);
		for (size_t i = STAMP_PACKET_BYTES; i < size; i++)
			promise(packet[i] == data[i] || !(packet[i] & 0x3f));
	}
	free(packet);
	return 0;
}
