/* SPDX-License-Identifier: Apache-2.0 */
#include "ntp_servo.h"

#include <stdlib.h>
#include <string.h>

#define SECONDS_PER_NS 1e-9

enum { TIME_CONSTANT_MAX = 10, TIME_CONSTANT_SHIFT = 4 };

/* Forget what was measured before a step. */
static void forget(struct ntp_servo *servo)
{
	servo->sample_count = 0;
	servo->spike_since_ns = -1;
	servo->init_count = 0;
	servo->sum_t = servo->sum_x = servo->sum_tt = servo->sum_tx = 0.0;
}

void ntp_servo_init(struct ntp_servo *servo, const struct ntp_servo_settings *settings)
{
	memset(servo, 0, sizeof(*servo));
	servo->settings = *settings;
	servo->used_ns = INT64_MIN;
	forget(servo);
}

static struct ntp_servo_answer step(struct ntp_servo *servo, int64_t offset_ns)
{
	forget(servo);
	return (struct ntp_servo_answer){ .action = NTP_STEP, .correction_ns = -offset_ns };
}

/* Collect samples for the first measurement; when there are enough, say what the frequency has to be corrected by. */
static struct ntp_servo_answer measure_frequency(struct ntp_servo *servo, int64_t offset_ns, int64_t now_ns)
{
	double t, x = (double)offset_ns, n, spread, slope, offset_now;

	if (!servo->init_count)
		servo->init_begin_ns = now_ns;
	t = (double)(now_ns - servo->init_begin_ns) * SECONDS_PER_NS;
	servo->init_count++;
	servo->sum_t += t;
	servo->sum_x += x;
	servo->sum_tt += t * t;
	servo->sum_tx += t * x;
	if (servo->init_count < servo->settings.init_polls)
		return (struct ntp_servo_answer){ .action = NTP_WAIT };
	n = servo->init_count;
	spread = n * servo->sum_tt - servo->sum_t * servo->sum_t;
	slope = spread > 0.0 ? (n * servo->sum_tx - servo->sum_t * servo->sum_x) / spread : 0.0;
	offset_now = servo->sum_x / n + slope * (t - servo->sum_t / n);
	servo->state = NTP_LOCKED;
	servo->used_ns = now_ns;
	/* Nanoseconds a second are parts per billion. */
	return (struct ntp_servo_answer){ NTP_SET, -(int64_t)offset_now, -slope };
}

static void filter_put(struct ntp_servo *servo, const struct ntp_sample *sample, int64_t now_ns)
{
	int kept = servo->sample_count < servo->settings.filter ? servo->sample_count : servo->settings.filter - 1;

	memmove(servo->samples + 1, servo->samples, (size_t)kept * sizeof(servo->samples[0]));
	memmove(servo->times_ns + 1, servo->times_ns, (size_t)kept * sizeof(servo->times_ns[0]));
	servo->samples[0] = *sample;
	servo->times_ns[0] = now_ns;
	servo->sample_count = kept + 1;
}

/* The sample of the shortest round trip is the best of them; it is used once, and none that is older (RFC 5905, section 10). */
static struct ntp_servo_answer slew(struct ntp_servo *servo, const struct ntp_sample *sample, int64_t now_ns)
{
	int best = 0;

	filter_put(servo, sample, now_ns);
	for (int i = 1; i < servo->sample_count; i++)
		if (servo->samples[i].delay_ns < servo->samples[best].delay_ns)
			best = i;
	if (servo->times_ns[best] <= servo->used_ns)
		return (struct ntp_servo_answer){ .action = NTP_WAIT };
	servo->used_ns = servo->times_ns[best];
	return (struct ntp_servo_answer){ .action = NTP_SLEW, .correction_ns = -servo->samples[best].offset_ns };
}

struct ntp_servo_answer ntp_servo_take(struct ntp_servo *servo, const struct ntp_sample *sample, int64_t now_ns)
{
	const struct ntp_servo_settings *settings = &servo->settings;
	int64_t size_ns = llabs(sample->offset_ns);

	if (settings->panic_ns && size_ns > settings->panic_ns)
		return (struct ntp_servo_answer){ .action = NTP_PANIC };
	if (size_ns > settings->step_ns) {
		bool first = servo->state == NTP_INIT && !servo->init_count;

		if (first)
			return step(servo, sample->offset_ns);
		if (servo->spike_since_ns < 0)
			servo->spike_since_ns = now_ns;
		if (settings->stepout_ns && now_ns - servo->spike_since_ns >= settings->stepout_ns)
			return step(servo, sample->offset_ns);
		return (struct ntp_servo_answer){ .action = NTP_SPIKE };
	}
	servo->spike_since_ns = -1;
	if (servo->state == NTP_INIT)
		return measure_frequency(servo, sample->offset_ns, now_ns);
	return slew(servo, sample, now_ns);
}

int ntp_time_constant(int64_t interval_ms)
{
	int exponent = -TIME_CONSTANT_SHIFT;

	for (int64_t interval_s = interval_ms / 1000; interval_s > 1; interval_s /= 2)
		exponent++;
	if (exponent < 0)
		return 0;
	return exponent < TIME_CONSTANT_MAX ? exponent : TIME_CONSTANT_MAX;
}
