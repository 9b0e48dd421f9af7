/* SPDX-License-Identifier: Apache-2.0 */
#include "traffic/send/txstamps.h"

#include <errno.h>

void txstamps_ask(struct txstamps *stamps, uint32_t key, int64_t sent_tai_ns)
{
	struct txstamps_request *request = &stamps->requests[stamps->asked++ % TXSTAMPS_PENDING_MAX];

	if (!request->open)
		stamps->open++;
	*request = (struct txstamps_request){ .key = key, .open = true, .sent_tai_ns = sent_tai_ns };
}

void txstamps_reset(struct txstamps *stamps)
{
	for (int i = 0; i < TXSTAMPS_PENDING_MAX; i++)
		stamps->requests[i].open = false;
	stamps->open = 0;
}

static void answer(struct txstamps *stamps, const struct port_transmitted *transmitted, const struct port_tai *tai,
		   struct histogram *transmit_stack)
{
	for (int i = 0; i < TXSTAMPS_PENDING_MAX; i++) {
		struct txstamps_request *request = &stamps->requests[i];

		if (!request->open || request->key != transmitted->key)
			continue;
		histogram_record(transmit_stack, port_tai_from_realtime_ns(tai, transmitted->stamp_realtime_ns) -
							 request->sent_tai_ns);
		request->open = false;
		stamps->open--;
		return;
	}
}

int txstamps_drain(struct txstamps *stamps, port_socket sock, const struct port_tai *tai,
		   struct histogram *transmit_stack)
{
	int count;

	for (count = 0; count < TXSTAMPS_PENDING_MAX; count++) {
		struct port_transmitted transmitted;
		int err = port_recv_transmitted(sock, &transmitted);

		if (err == -EBADMSG)
			continue; /* another kind of report */
		if (err)
			break;
		answer(stamps, &transmitted, tai, transmit_stack);
	}
	return count;
}
