/* SPDX-License-Identifier: Apache-2.0 */
/* The end that answers each stimulus at once. */
#include "traffic/stimulus/stimulus.h"

#include <errno.h>

#include "events/bwevents.h"
#include "traffic/connection.h"

BW_EVENT_POINT(stimulus_received, "stimulus", "received", "a stimulus was read whole; tag: its number");
BW_EVENT_POINT(response_sent, "response", "sent", "its response is handed to the connection; tag: its number");

/* Return 0; or -errno. */
static int answer(struct stimulus_client *client, uint32_t number)
{
	struct stimulus_end *end = &client->end;
	struct side *side = &end->side;
	struct stimulus stimulus, response;
	int64_t received_tai_ns, received_monotonic_ns, sent_monotonic_ns;
	bool delayed;
	int err = stimulus_receive(end, end->timeout_ns, &stimulus);

	if (err)
		return err;
	delayed = stimulus_is_delayed(end, stimulus.number);
	if (delayed)
		side_delay(&side->receive);
	BW_EVENT(stimulus_received, stimulus.number);
	received_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);
	received_tai_ns = port_tai_now_ns(&side->tai);
	if (stimulus.is_response || stimulus.number != number || (number && stimulus.count != end->count))
		return -EPROTO;
	end->count = stimulus.count;
	end->size_bytes = stimulus.size_bytes;
	stimulus_record_leg(end, &stimulus, received_tai_ns);
	if (!delayed) {
		side_delay(&side->receive);
		side_delay(&side->send);
	}
	response = stimulus;
	response.is_response = true;
	response.sent_tai_ns = port_tai_now_ns(&side->tai);
	sent_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);
	response.sent_after_ns = sent_monotonic_ns - received_monotonic_ns;
	histogram_record(client->residence, response.sent_after_ns);
	BW_EVENT(response_sent, number);
	return stimulus_send(end, &response, sent_monotonic_ns);
}

void stimulus_client_run(void *argument)
{
	struct stimulus_client *client = argument;
	struct stimulus_end *end = &client->end;
	uint32_t number = 0;
	int err = connection_open(&client->peer, end->timeout_ns, &end->side.sock);

	if (err && err != -EINTR)
		stimulus_fail(end, "the server could not be reached", err);
	while (!err && (!number || number < end->count)) {
		err = answer(client, number);
		number += !err;
		stepwatch_tai_now_ns(&end->watch, &end->side.tai);
		if (err == -ETIMEDOUT)
			stimulus_fail(end, "no stimulus came in time", 0);
		else if (err == -EPROTO)
			stimulus_fail(end, "what came was no stimulus", 0);
		else if (err == -ECONNRESET)
			stimulus_fail(end, "the server ended before its last stimulus", 0);
		else if (err && err != -EINTR)
			stimulus_fail(end, "the connection failed", err);
	}
	if (err == -EINTR)
		stimulus_fail(end, "stopped before its end", 0);
	atomic_store(&end->side.finished, true);
}
