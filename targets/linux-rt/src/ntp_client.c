/* SPDX-License-Identifier: Apache-2.0 */
#include "ntp_client.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/time_units.h"
#include "ntp_discipline.h"
#include "ntp/ntp_packet.h"
#include "port/port.h"

#define LONG_MS INT64_C(1000000000)
#define SLOW_NS (INT64_C(1024) * NS_PER_S) /* the longest interval of NTP's clients, as a rule */

enum { REJECTED_MAX = 16, REACH_POLLS = 8 };

static const char *state_name(const struct ntp_client *client)
{
	if (client->held || client->missed >= REACH_POLLS)
		return "hold";
	return client->servo.state == NTP_INIT ? "init" : "locked";
}

static int log_rejected(struct ntp_client *client, const char *reason, const char *detail)
{
	return ntp_log_rejected(&client->log, state_name(client), reason, detail);
}

/* ---- one answer ------------------------------------------------------------------------------------------------ */

/* Log a good answer, before its correction: the step is part of the line. */
static int log_poll(struct ntp_client *client, const struct ntp_sample *sample, int64_t received_realtime_ns,
		    const struct ntp_servo_answer *answer)
{
	double ppb = 0.0;
	int err = frequency_get(client->clock, &ppb);

	if (err)
		return err;
	return ntp_log_poll(&client->log, state_name(client), sample, received_realtime_ns, ppb,
			    answer->action == NTP_STEP ? answer->correction_ns : 0);
}

/* Take a good answer: the servo, the clock, the log. Returns 0, NTP_END_PANIC or -errno. */
static int sample_use(struct ntp_client *client, const struct ntp_sample *sample, int64_t received_realtime_ns)
{
	struct ntp_servo_answer answer = { .action = NTP_WAIT };
	int err;

	client->missed = 0;
	if (client->slowed > 0)
		client->slowed--;
	if (!client->settings.measure_only)
		answer = ntp_servo_take(&client->servo, sample, port_clock_now_ns(PORT_CLOCK_MONOTONIC));
	if (answer.action == NTP_SPIKE || answer.action == NTP_PANIC) {
		snprintf(client->end_detail, sizeof(client->end_detail), "%lld ns", (long long)sample->offset_ns);
		err = log_rejected(client, answer.action == NTP_PANIC ? "panic" : "spike", client->end_detail);
		return err || answer.action == NTP_SPIKE ? err : NTP_END_PANIC;
	}
	err = log_poll(client, sample, received_realtime_ns, &answer);
	return err ? err : ntp_discipline(client->clock, &answer, client->settings.constant);
}

static const char *kiss_detail(const struct ntp_reply *reply, char text[16])
{
	snprintf(text, 16, "stratum %u", reply->stratum);
	return reply->stratum == 0 ? reply->kiss : text;
}

static int64_t interval_ns(const struct ntp_client *client)
{
	const struct ntp_client_settings *settings = &client->settings;
	bool init = !settings->measure_only && client->servo.state == NTP_INIT && settings->init_interval_ms < settings->interval_ms;
	int64_t ns = (init ? settings->init_interval_ms : settings->interval_ms) * NS_PER_MS;

	for (int i = 0; i < client->slowed && ns < SLOW_NS; i++)
		ns = 2 * ns < SLOW_NS ? 2 * ns : SLOW_NS;
	return ns;
}

/* A server that denies must not be asked again (RFC 5905, section 7.4); one that complains of the rate is asked half as often for a while. */
static int kiss_obey(struct ntp_client *client, const char *kiss)
{
	if (strcmp(kiss, "RATE") == 0 && interval_ns(client) < SLOW_NS)
		client->slowed++;
	snprintf(client->end_detail, sizeof(client->end_detail), "%s", kiss);
	return strcmp(kiss, "DENY") == 0 || strcmp(kiss, "RSTR") == 0 ? NTP_END_REFUSED : 0;
}

/*
 * Look at one datagram. Returns 0 (*done: the poll is over), NTP_END_… or -errno. What does not answer this request does not end
 * the poll: anybody could send it.
 */
static int datagram_take(struct ntp_client *client, const struct datagram *datagram, uint64_t sent, bool *done)
{
	const struct address *server = &client->settings.server;
	struct ntp_reply reply;
	struct ntp_sample sample;
	enum ntp_reject reject;
	char detail[16];
	int err;

	if (datagram->source.ipv4 != server->ipv4 || datagram->source.port != server->port)
		return log_rejected(client, "source", NULL);
	if (ntp_reply_parse(datagram->bytes, datagram->size_bytes, &reply))
		return log_rejected(client, ntp_reject_name(NTP_SHORT), NULL);
	reject = ntp_reply_check(&reply, sent);
	*done = reject == NTP_GOOD || reject >= NTP_KISS_OF_DEATH;
	if (reject == NTP_GOOD)
		reject = ntp_sample_take(&reply, sent, ntp_from_realtime_ns(datagram->received_realtime_ns), &sample);
	if (reject == NTP_GOOD)
		return sample_use(client, &sample, datagram->received_realtime_ns);
	if (*done)
		client->missed++;
	err = log_rejected(client, ntp_reject_name(reject),
			   reject == NTP_KISS_OF_DEATH || reject == NTP_STRATUM ? kiss_detail(&reply, detail) : NULL);
	return !err && reject == NTP_KISS_OF_DEATH ? kiss_obey(client, reply.kiss) : err;
}

/* ---- one poll -------------------------------------------------------------------------------------------------- */

/* Take a signal. Returns 0 or -errno. */
static int signal_take(struct ntp_client *client, int event)
{
	if (event == WAIT_END) {
		client->ended = true;
		return 0;
	}
	client->held = event == WAIT_HOLD;
	return ntp_log_state(&client->log, state_name(client));
}

static int request_send(const struct ntp_client *client, uint64_t *sent)
{
	uint8_t packet[NTP_PACKET_BYTES];

	*sent = ntp_from_realtime_ns(port_clock_now_ns(PORT_CLOCK_REALTIME));
	ntp_request_pack(packet, *sent);
	return waiter_send(client->waiter, &client->settings.server, packet, sizeof(packet));
}

/* Ask once. Returns 0, NTP_END_… or -errno. */
static int poll_once(struct ntp_client *client)
{
	int64_t deadline_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC) +
					client->settings.timeout_ms * NS_PER_MS;
	struct datagram datagram;
	bool done = false;
	uint64_t sent;
	int err = request_send(client, &sent);

	if (err) {
		/* The network may come back. */
		client->missed++;
		return log_rejected(client, "not-sent", strerror(-err));
	}
	for (int taken = 0; !err && !done && !client->ended && !client->held;) {
		int event = taken == REJECTED_MAX ? WAIT_TIME :
						    waiter_wait(client->waiter, deadline_monotonic_ns, &datagram);

		if (event < 0)
			return event;
		if (event == WAIT_TIME) {
			client->missed++;
			return log_rejected(client, "no-answer", NULL);
		}
		if (event == WAIT_DATAGRAM) {
			taken++;
			err = datagram_take(client, &datagram, sent, &done);
		} else {
			err = signal_take(client, event);
		}
	}
	return err;
}

/* ---- the run --------------------------------------------------------------------------------------------------- */

/* Wait for the next poll; one that is held waits until it is told to listen again. Returns 0 or -errno. */
static int next_poll_wait(struct ntp_client *client, int64_t *next_monotonic_ns)
{
	while (!client->ended) {
		bool was_held = client->held;
		int64_t until_monotonic_ns = was_held ? port_clock_now_ns(PORT_CLOCK_MONOTONIC) + LONG_MS * NS_PER_MS :
							*next_monotonic_ns;
		int event = waiter_wait(client->waiter, until_monotonic_ns, NULL), err = 0;

		if (event < 0)
			return event;
		if (event != WAIT_TIME)
			err = signal_take(client, event);
		else if (!was_held)
			break;
		if (err)
			return err;
		if (was_held && !client->held)
			*next_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC);
	}
	return 0;
}

static int polls_run(struct ntp_client *client)
{
	int64_t next_monotonic_ns = port_clock_now_ns(PORT_CLOCK_MONOTONIC), polls_max = client->settings.polls_max;

	for (int64_t polls = 0; !client->ended && (!polls_max || polls < polls_max); polls++) {
		int err = poll_once(client);

		if (!err) {
			next_monotonic_ns += interval_ns(client);
			err = next_poll_wait(client, &next_monotonic_ns);
		}
		if (err)
			return err;
	}
	return 0;
}

void ntp_client_init(struct ntp_client *client, const struct ntp_client_settings *settings, struct waiter *waiter,
		     struct frequency_clock *clock, struct json *json)
{
	struct ntp_servo_settings servo = {
		.step_ns = settings->step_ns,
		.stepout_ns = settings->stepout_ms * NS_PER_MS,
		.panic_ns = settings->panic_ms * NS_PER_MS,
		.init_polls = (int)settings->init_polls,
		.filter = (int)settings->filter,
	};
	struct port_tai tai;

	port_tai_init(&tai, TAI_UTC_DEFAULT_S);
	*client = (struct ntp_client){ .settings = *settings, .waiter = waiter, .clock = clock };
	client->log = (struct ntp_log){ .json = json, .tai_utc_s = tai.tai_utc_s };
	ntp_servo_init(&client->servo, &servo);
	if (settings->constant == NTP_CONSTANT_AUTO)
		client->settings.constant = ntp_time_constant(settings->interval_ms);
}

int ntp_client_run(struct ntp_client *client)
{
	const struct ntp_client_settings *settings = &client->settings;
	int err = settings->measure_only ? 0 : frequency_loop_slew(0, settings->constant);

	if (!err)
		err = ntp_log_ready(&client->log, state_name(client), &settings->server, settings->interval_ms, settings->constant,
				    !settings->measure_only);
	if (!err)
		err = polls_run(client);
	/* What is left of the last slew goes no further: the frequency alone stays. */
	if (!err && !settings->measure_only)
		err = frequency_loop_slew(0, settings->constant);
	return err;
}
