/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an NTP client does with its samples: a clock filter and the clock state machine of RFC 5905 (sections 10 and 11.3),
 * for a kernel that has the phase-locked loop. Pure: it says what is to be done, and touches no clock.
 *
 * Offsets are those of the client against the server; positive: the client is ahead.
 */
#ifndef BW_NTP_SERVO_H
#define BW_NTP_SERVO_H

#include <stdbool.h>
#include <stdint.h>

#include "ntp/ntp_packet.h"

enum { NTP_FILTER_MAX = 8, NTP_INIT_POLLS_MAX = 64 };

enum ntp_servo_state {
	NTP_INIT, /* the frequency is being measured */
	NTP_LOCKED,
};

enum ntp_servo_action {
	NTP_WAIT,      /* nothing to be done with this sample */
	NTP_STEP,      /* step the clock by correction_ns */
	NTP_SET,       /* add frequency_ppb to the frequency, then slew by correction_ns */
	NTP_SLEW,      /* hand correction_ns to the kernel's loop */
	NTP_SPIKE,     /* too far off: not used, unless it lasts */
	NTP_PANIC,     /* so far off that one of the two clocks is out of order */
};

struct ntp_servo_settings {
	int64_t step_ns;    /* an offset beyond it is stepped, not slewed: STEPT, 128 ms */
	int64_t stepout_ns; /* but only once it has lasted so long: WATCH, 300 s; 0: never again after the start */
	int64_t panic_ns;   /* an offset beyond it ends the client: PANICT, 1000 s; 0: none */
	int init_polls;     /* samples of the first measurement of the frequency: 2..64 */
	int filter;         /* stages of the clock filter: 1..8 */
};

struct ntp_servo_answer {
	enum ntp_servo_action action;
	int64_t correction_ns;
	double frequency_ppb;
};

struct ntp_servo {
	struct ntp_servo_settings settings;
	enum ntp_servo_state state;
	struct ntp_sample samples[NTP_FILTER_MAX]; /* of the filter, the newest first */
	int64_t times_monotonic_ns[NTP_FILTER_MAX];
	int sample_count;
	int64_t used_monotonic_ns;        /* time of the newest sample that was used */
	int64_t spike_since_monotonic_ns; /* -1: none */
	/* First measurement of the frequency. */
	struct ntp_sample init_samples[NTP_INIT_POLLS_MAX];
	int64_t init_times_monotonic_ns[NTP_INIT_POLLS_MAX];
	int init_count;
};

void ntp_servo_init(struct ntp_servo *servo, const struct ntp_servo_settings *settings);

/**
 * Take a sample.
 *
 * @param now_monotonic_ns  when it was taken; grows from call to call
 */
struct ntp_servo_answer ntp_servo_take(struct ntp_servo *servo, const struct ntp_sample *sample,
				       int64_t now_monotonic_ns);

/** Time constant of the kernel's loop for a poll interval: log2 of it less 4, as ntpd sets it; 0..10. */
int ntp_time_constant(int64_t interval_ms);

#endif
