/* SPDX-License-Identifier: Apache-2.0 */
/*
 * BBR (draft-cardwell-iccrg-bbr-congestion-control-02): a connection sends at the rate at which its data has arrived at best, and has
 * twice that rate's bytes of the least round trip in flight, however much is lost. A loss is no sign of congestion here: version 1's
 * rule, because version 3 takes its rate back where more than 2 % of a round trip are lost, for which such a connection is not.
 * The probe of the least round trip is version 3's, half of what the path holds instead of four segments, and there is none where
 * the program pauses now and then: what it sends next finds the path empty.
 */
#include "congestion.h"

#include "lwip/priv/tcp_priv.h"

/* Doubles what is in flight each round trip: 2/ln 2. */
#define STARTUP_GAIN 2.885
#define WINDOW_GAIN 2.0
#define PACE_MARGIN 0.99 /* a queue does not stay */
#define GROWTH 1.25      /* less of it in three round trips: the path is full */
#define FULL_ROUNDS 3
#define PROBE_RTT_GAIN 0.5
#define WINDOW_SEGMENTS 4
#define START_SEGMENTS 10 /* in the first round trip (RFC 6928) */

#define MIN_RTT_IDLE_US 5000000u /* age from which on the first round trip after nothing was in flight takes its place */
#define MIN_RTT_PROBE_US 10000000u
#define PROBE_RTT_US 200000u

/* What goes out at once, and how much of what a late timer has kept back goes with it. */
#define QUANTUM_US 200.0
#define LATE_US 800.0
#define QUANTUM_MAX_BYTES 65536
#define QUANTUM_SEGMENTS 2
#define RATE_ROUNDS 10
#define EXTRA_ROUNDS 5
#define EXTRA_MAX_S 0.1

static const double gains[] = {1.25, 0.75, 1, 1, 1, 1, 1, 1};

enum { GAIN_UP, GAIN_DOWN };

static double rate_bytes_per_s(const struct congestion_model_state *model)
{
	return LWIP_MAX(model->rates_bytes_per_s[0], model->rates_bytes_per_s[1]);
}

/* What the path holds, times a gain. */
static double path_bytes(const struct congestion_model_state *model, double gain)
{
	return gain * rate_bytes_per_s(model) * (double)model->min_rtt_us * 1e-6;
}

/* What goes at the pace in so long, within the limits of what goes out at once. */
static double paced_bytes(const struct tcp_pcb *pcb, double us)
{
	double bytes = LWIP_MIN(pcb->recovery.model.pace_bytes_per_s * us * 1e-6, QUANTUM_MAX_BYTES);

	return LWIP_MAX(bytes, QUANTUM_SEGMENTS * (double)pcb->mss);
}

static double quantum_bytes(const struct tcp_pcb *pcb)
{
	return paced_bytes(pcb, QUANTUM_US);
}

static double window_bytes(const struct tcp_pcb *pcb, double gain)
{
	const struct congestion_model_state *model = &pcb->recovery.model;
	double window = path_bytes(model, gain) + 3 * paced_bytes(pcb, QUANTUM_US + LATE_US);

	if (model->full)
		window += LWIP_MIN(LWIP_MAX(model->extra_bytes[0], model->extra_bytes[1]), rate_bytes_per_s(model) * EXTRA_MAX_S);
	return window;
}

static double pace_gain(const struct congestion_model_state *model)
{
	switch (model->phase) {
	case MODEL_STARTUP: return STARTUP_GAIN;
	case MODEL_DRAIN: return 1 / STARTUP_GAIN;
	case MODEL_CRUISE: return gains[model->gain];
	default: return 1;
	}
}

/* Sending. */

/* Whether the program has nothing more to send. */
static bool is_limited(const struct tcp_pcb *pcb)
{
	return !pcb->unsent && pcb->recovery.lost_bytes == 0 && congestion_room_bytes(pcb) > 0 && !pcb->recovery.program_waits;
}

static uint64_t on_sent(struct tcp_pcb *pcb, uint32_t size_bytes, uint64_t now_us)
{
	struct congestion_model_state *model = &pcb->recovery.model;

	if (pcb->recovery.in_flight_bytes == size_bytes)
		model->began_idle = true;
	if (model->pace_bytes_per_s == 0)
		return 0;
	model->paced_until_us = LWIP_MAX(model->paced_until_us, (double)now_us - LATE_US) + size_bytes * 1e6 / model->pace_bytes_per_s;
	return model->paced_until_us > (double)now_us ? (uint64_t)model->paced_until_us + 1 : 0;
}

static uint32_t room_bytes(const struct tcp_pcb *pcb, uint64_t now_us)
{
	const struct congestion_model_state *model = &pcb->recovery.model;
	double early_us = LWIP_MAX(model->paced_until_us - (double)now_us, -LATE_US), paced_room_bytes;
	uint32_t window_room_bytes = congestion_room_bytes(pcb);

	if (model->pace_bytes_per_s == 0)
		return window_room_bytes;
	paced_room_bytes = quantum_bytes(pcb) - early_us * 1e-6 * model->pace_bytes_per_s;
	return paced_room_bytes <= 0 ? 0 : (uint32_t)LWIP_MIN((double)window_room_bytes, paced_room_bytes);
}

/* What was sent stays there until all before it has arrived, and a lost segment takes a round trip more (Linux: as much). */
static uint32_t buffer_bytes(const struct tcp_pcb *pcb)
{
	return 3 * pcb->cwnd;
}

/* What the path is. */

static void take_round(struct tcp_pcb *pcb, const struct delivery_sample *sample)
{
	struct congestion_model_state *model = &pcb->recovery.model;

	model->round_begins = sample->delivered_bytes >= model->round_end_bytes;
	if (model->round_begins)
		model->round_end_bytes = pcb->recovery.delivery.delivered_bytes;
}

/* Round trips as they are, not the least one: on a LAN ten of that are over while a thread waits for its processor. */
static void take_rate(struct congestion_model_state *model, const struct delivery_sample *sample)
{
	/* Without a rate of their own, as of a program that does not send, they say nothing against those before. */
	if (model->round_begins && ++model->rate_rounds >= RATE_ROUNDS && model->rates_bytes_per_s[0] > 0) {
		model->rate_rounds = 0;
		model->rates_bytes_per_s[1] = model->rates_bytes_per_s[0];
		model->rates_bytes_per_s[0] = 0;
	}
	if (!sample->limited || sample->bytes_per_s >= rate_bytes_per_s(model))
		model->rates_bytes_per_s[0] = LWIP_MAX(model->rates_bytes_per_s[0], sample->bytes_per_s);
}

/* A peer, a card or a thread that was late acknowledges, hands on or handles much at once: meanwhile more has to be in flight. */
static void take_extra(struct tcp_pcb *pcb, uint32_t delivered_bytes, uint64_t now_us)
{
	struct congestion_model_state *model = &pcb->recovery.model;
	double expected_bytes = rate_bytes_per_s(model) * (double)(now_us - model->extra_since_us) * 1e-6, extra_bytes;

	if (model->round_begins && ++model->extra_rounds >= EXTRA_ROUNDS) {
		model->extra_rounds = 0;
		model->extra_bytes[1] = model->extra_bytes[0];
		model->extra_bytes[0] = 0;
	}
	if (model->extra_since_us == 0 || (double)model->extra_delivered_bytes <= expected_bytes) {
		model->extra_since_us = now_us;
		model->extra_delivered_bytes = 0;
		expected_bytes = 0;
	}
	model->extra_delivered_bytes += delivered_bytes;
	extra_bytes = LWIP_MIN((double)model->extra_delivered_bytes - expected_bytes, (double)pcb->cwnd);
	model->extra_bytes[0] = LWIP_MAX(model->extra_bytes[0], extra_bytes);
}

static void take_full(struct congestion_model_state *model, const struct delivery_sample *sample)
{
	if (model->full || !model->round_begins || sample->limited)
		return;
	if (rate_bytes_per_s(model) >= model->full_bytes_per_s * GROWTH) {
		model->full_bytes_per_s = rate_bytes_per_s(model);
		model->full_rounds = 0;
		return;
	}
	model->full = ++model->full_rounds >= FULL_ROUNDS;
}

static void on_rtt(struct tcp_pcb *pcb, uint64_t rtt_us, uint32_t ack, uint64_t now_us)
{
	struct congestion_model_state *model = &pcb->recovery.model;

	(void)ack;
	model->last_rtt_us = rtt_us;
	if (model->min_rtt_us == 0 || rtt_us <= model->min_rtt_us) {
		model->min_rtt_us = rtt_us;
		model->min_rtt_at_us = now_us;
	}
	if (model->phase == MODEL_PROBE_RTT && (model->probe_min_rtt_us == 0 || rtt_us < model->probe_min_rtt_us))
		model->probe_min_rtt_us = rtt_us;
}

/* What it does. */

static void begin_gain(struct congestion_model_state *model, unsigned int gain, uint64_t now_us)
{
	model->gain = gain;
	model->gain_at_us = now_us;
}

/* Connections that share a path do not probe it together: each begins anywhere in the cycle, but not with less. */
static void begin_cruise(struct congestion_model_state *model, uint64_t now_us)
{
	unsigned int gain = LWIP_RAND() % (LWIP_ARRAYSIZE(gains) - 1);

	model->phase = MODEL_CRUISE;
	begin_gain(model, gain >= GAIN_DOWN ? gain + 1 : gain, now_us);
}

static void cycle(struct tcp_pcb *pcb, uint32_t flight_bytes, uint64_t now_us)
{
	struct congestion_model_state *model = &pcb->recovery.model;
	bool over = now_us - model->gain_at_us > model->min_rtt_us;

	if (model->gain == GAIN_UP)
		over = over && (pcb->recovery.state != RECOVERY_OPEN || flight_bytes >= window_bytes(pcb, gains[GAIN_UP]));
	else if (model->gain == GAIN_DOWN)
		over = over || pcb->recovery.in_flight_bytes <= path_bytes(model, 1);
	if (over)
		begin_gain(model, (model->gain + 1) % LWIP_ARRAYSIZE(gains), now_us);
}

static double probe_rtt_bytes(const struct tcp_pcb *pcb)
{
	return LWIP_MAX(path_bytes(&pcb->recovery.model, PROBE_RTT_GAIN), WINDOW_SEGMENTS * (double)pcb->mss);
}

static void keep_window(struct tcp_pcb *pcb)
{
	pcb->recovery.model.kept_window_bytes = LWIP_MAX(pcb->recovery.model.kept_window_bytes, pcb->cwnd);
}

static void restore_window(struct tcp_pcb *pcb)
{
	pcb->cwnd = LWIP_MAX(pcb->cwnd, pcb->recovery.model.kept_window_bytes);
	pcb->recovery.model.kept_window_bytes = 0;
}

static void check_min_rtt(struct tcp_pcb *pcb, uint64_t now_us)
{
	struct congestion_model_state *model = &pcb->recovery.model;
	uint64_t age_us = now_us - model->min_rtt_at_us;

	if (age_us > MIN_RTT_IDLE_US && model->began_idle) {
		model->min_rtt_us = model->last_rtt_us;
		model->min_rtt_at_us = now_us;
	} else if (age_us > MIN_RTT_PROBE_US && model->phase != MODEL_PROBE_RTT) {
		keep_window(pcb);
		model->phase = MODEL_PROBE_RTT;
		model->probe_until_us = model->probe_min_rtt_us = 0;
	}
}

static void probe_rtt(struct tcp_pcb *pcb, uint64_t now_us)
{
	struct congestion_model_state *model = &pcb->recovery.model;

	if (model->probe_until_us == 0) {
		if (pcb->recovery.in_flight_bytes <= probe_rtt_bytes(pcb)) {
			model->probe_until_us = now_us + PROBE_RTT_US;
			model->probe_round_end_bytes = pcb->recovery.delivery.delivered_bytes + pcb->recovery.in_flight_bytes;
			model->probe_min_rtt_us = 0;
		}
		return;
	}
	if (now_us < model->probe_until_us || pcb->recovery.delivery.delivered_bytes < model->probe_round_end_bytes ||
	    model->probe_min_rtt_us == 0)
		return;
	model->min_rtt_us = model->probe_min_rtt_us;
	model->min_rtt_at_us = now_us;
	restore_window(pcb);
	if (model->full)
		begin_cruise(model, now_us);
	else
		model->phase = MODEL_STARTUP;
}

static void set_pace(struct tcp_pcb *pcb)
{
	struct congestion_model_state *model = &pcb->recovery.model;
	double pace_bytes_per_s = pace_gain(model) * rate_bytes_per_s(model) * PACE_MARGIN;

	if (model->pace_bytes_per_s == 0) {
		double rtt_s = (double)model->min_rtt_us * 1e-6;

		model->pace_bytes_per_s = STARTUP_GAIN * START_SEGMENTS * pcb->mss / rtt_s;
	}
	if (model->full || pace_bytes_per_s > model->pace_bytes_per_s)
		model->pace_bytes_per_s = pace_bytes_per_s;
}

static void set_window(struct tcp_pcb *pcb, uint32_t delivered_bytes)
{
	struct congestion_model_state *model = &pcb->recovery.model;
	double target_bytes = window_bytes(pcb, model->full ? WINDOW_GAIN : STARTUP_GAIN), window = pcb->cwnd;

	if (model->full)
		window = LWIP_MIN(window + delivered_bytes, target_bytes);
	else if (window < target_bytes)
		window += delivered_bytes;
	window = LWIP_MAX(window, WINDOW_SEGMENTS * (double)pcb->mss);
	if (model->phase == MODEL_PROBE_RTT)
		window = LWIP_MIN(window, probe_rtt_bytes(pcb));
	pcb->cwnd = (tcpwnd_size_t)LWIP_MIN(window, TCP_SND_BUF * 2.0);
}

static void on_delivered(struct tcp_pcb *pcb, uint32_t delivered_bytes, uint32_t flight_bytes, uint64_t now_us)
{
	struct recovery *recovery = &pcb->recovery;
	struct congestion_model_state *model = &recovery->model;
	struct delivery_sample sample = delivery_take_sample(&recovery->delivery, model->min_rtt_us);

	if (is_limited(pcb)) {
		delivery_is_limited(&recovery->delivery, recovery->in_flight_bytes);
		sample.limited = true;
	}
	if (model->min_rtt_us == 0)
		return;
	take_round(pcb, &sample);
	take_rate(model, &sample);
	take_extra(pcb, delivered_bytes, now_us);
	if (model->phase == MODEL_CRUISE)
		cycle(pcb, flight_bytes, now_us);
	take_full(model, &sample);
	if (model->phase == MODEL_STARTUP && model->full)
		model->phase = MODEL_DRAIN;
	if (model->phase == MODEL_DRAIN && recovery->in_flight_bytes <= path_bytes(model, 1))
		begin_cruise(model, now_us);
	check_min_rtt(pcb, now_us);
	model->began_idle = false;
	if (model->phase == MODEL_PROBE_RTT)
		probe_rtt(pcb, now_us);
	set_pace(pcb);
	set_window(pcb, delivered_bytes);
}

/* Losses. */

static void begin(struct tcp_pcb *pcb)
{
	pcb->recovery.undo_segments = 0;
	pcb->recovery.undo_possible = true;
}

static void probe_repaired(struct tcp_pcb *pcb)
{
	(void)pcb;
}

static void collapse(struct tcp_pcb *pcb, bool first)
{
	if (first) {
		begin(pcb);
		keep_window(pcb);
	}
	pcb->cwnd = pcb->mss;
}

static void undo(struct tcp_pcb *pcb)
{
	restore_window(pcb);
	pcb->recovery.undo_possible = false;
}

const struct congestion congestion_model = {on_sent, begin, probe_repaired, collapse, on_delivered, on_rtt, restore_window, undo,
					    room_bytes, buffer_bytes};
