/* SPDX-License-Identifier: Apache-2.0 */
/* The end that sends stimuli, one on each place of a grid, the next one when the last is answered. */
#include "traffic/stimulus/stimulus.h"

#include <errno.h>

#include "events/bwevents.h"
#include "time/heard_sleep.h"
#include "traffic/connection.h"

BW_EVENT_POINT(stimulus_sent, "stimulus", "sent", "a stimulus is handed to the connection; tag: its number");
BW_EVENT_POINT(response_received, "response", "received", "its response was read whole; tag: its number");

/* Return 0 or -errno. */
static int make_trip(struct stimulus_server *server, uint32_t number)
{
	struct stimulus_end *end = &server->end;
	struct side *side = &end->side;
	struct stimulus stimulus = { .size_bytes = end->size_bytes, .count = end->count, .number = number }, response;
	bool delayed = stimulus_is_delayed(end, number);
	int64_t sent_monotonic_ns, received_tai_ns, received_monotonic_ns;
	int err;

	if (!delayed)
		side_delay(&side->send);
	stimulus.sent_tai_ns = port_tai_now_ns(&side->tai);
	sent_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);
	BW_EVENT(stimulus_sent, number);
	err = stimulus_send(end, &stimulus, sent_monotonic_ns);
	if (err)
		return err;
	err = stimulus_receive(end, end->timeout_ns, &response);
	if (err)
		return err;
	if (delayed)
		side_delay(&side->receive);
	BW_EVENT(response_received, response.number);
	received_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);
	received_tai_ns = port_tai_now_ns(&side->tai);
	if (!delayed)
		side_delay(&side->receive);
	if (!response.is_response || response.number != number || response.size_bytes != end->size_bytes)
		return -EPROTO;
	stimulus_record_leg(end, &response, received_tai_ns);
	histogram_record(server->round_trip, received_monotonic_ns - sent_monotonic_ns);
	return 0;
}

void stimulus_server_run(void *argument)
{
	struct stimulus_server *server = argument;
	struct stimulus_end *end = &server->end;
	int64_t begin_monotonic_ns;
	int err = connection_accept(&server->listener, INT64_MAX, &end->side.sock);

	if (err && err != -EINTR)
		stimulus_fail(end, "no client could be accepted", err);
	begin_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);
	for (uint32_t number = 0; !err && number < end->count; number++) {
		if (heard_sleep_until_monotonic_ns(begin_monotonic_ns + (int64_t)number * server->interval_ns)) {
			err = -EINTR;
			break;
		}
		err = make_trip(server, number);
		stepwatch_tai_now_ns(&end->watch, &end->side.tai);
		if (err == -ETIMEDOUT)
			stimulus_fail(end, "the client has not answered in time", 0);
		else if (err == -EPROTO)
			stimulus_fail(end, "what came was no response", 0);
		else if (err && err != -EINTR)
			stimulus_fail(end, "the connection failed", err);
	}
	if (err == -EINTR)
		stimulus_fail(end, "stopped before its end", 0);
	atomic_store(&end->side.finished, true);
}
