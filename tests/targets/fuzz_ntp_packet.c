/* SPDX-License-Identifier: Apache-2.0 */
/** Fuzz target: an answer from the network. It is refused, or its sample and its text are sound. */
#include <string.h>

#include "../traffic_gen/fuzz.h"
#include "ntp/ntp_packet.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ntp_reply reply;
	struct ntp_sample sample;
	uint64_t received;
	enum ntp_reject reject;

	if (size < 8)
		return 0;
	memcpy(&received, data, sizeof(received));
	if (ntp_reply_parse(data + 8, size - 8, &reply)) {
		promise(size - 8 < NTP_PACKET_BYTES);
		return 0;
	}
	promise(strlen(reply.kiss) == NTP_KISS_BYTES - 1 && reply.root_delay_ns >= 0 && reply.root_dispersion_ns >= 0);
	reject = ntp_reply_check(&reply, reply.origin);
	promise(reject != NTP_ORIGIN && strlen(ntp_reject_name(reject)) > 0);
	if (reject == NTP_GOOD && ntp_sample_take(&reply, reply.origin, received, &sample) == NTP_GOOD)
		promise(sample.delay_ns >= -1000);
	return 0;
}
