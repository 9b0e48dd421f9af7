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
	servo->spike_since_monotonic_ns = -1;
	servo->init_count = 0;
}

void ntp_servo_init(struct ntp_servo *servo, const struct ntp_servo_settings *settings)
{
	memset(servo, 0, sizeof(*servo));
	servo->settings = *settings;
	servo->used_monotonic_ns = INT64_MIN;
	forget(servo);
}

static struct ntp_servo_answer step(struct ntp_servo *servo, int64_t offset_ns)
{
	forget(servo);
	return (struct ntp_servo_answer){ .action = NTP_STEP, .correction_ns = -offset_ns };
}

static int delay_compare(const void *left, const void *right)
{
	int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;

	return (a > b) - (a < b);
}

static int64_t init_delay_median(const struct ntp_servo *servo)
{
	int64_t delays_ns[NTP_INIT_POLLS_MAX];

	for (int i = 0; i < servo->init_count; i++)
		delays_ns[i] = servo->init_samples[i].delay_ns;
	qsort(delays_ns, (size_t)servo->init_count, sizeof(delays_ns[0]), delay_compare);
	return delays_ns[servo->init_count / 2];
}

/*
 * A straight line through the offsets over time, the shorter half of the round trips only: one packet that was held up may be off
 * by more than the clock gains meanwhile. The line's slope is the frequency error: nanoseconds a second are parts per billion.
 */
static struct ntp_servo_answer init_fit(const struct ntp_servo *servo)
{
	int64_t longest_ns = init_delay_median(servo);
	int64_t last_monotonic_ns = servo->init_times_monotonic_ns[servo->init_count - 1];
	double n = 0.0, sum_t = 0.0, sum_x = 0.0, sum_tt = 0.0, sum_tx = 0.0, spread, slope, offset_now;

	for (int i = 0; i < servo->init_count; i++) {
		/* Seconds before the last sample, so that the line's value there is its constant. */
		double t = (double)(servo->init_times_monotonic_ns[i] - last_monotonic_ns) * SECONDS_PER_NS;
		double x = (double)servo->init_samples[i].offset_ns;

		if (servo->init_samples[i].delay_ns > longest_ns)
			continue;
		n += 1.0;
		sum_t += t;
		sum_x += x;
		sum_tt += t * t;
		sum_tx += t * x;
	}
	spread = n * sum_tt - sum_t * sum_t;
	slope = spread > 0.0 ? (n * sum_tx - sum_t * sum_x) / spread : 0.0;
	offset_now = (sum_x - slope * sum_t) / n;
	return (struct ntp_servo_answer){ NTP_SET, -(int64_t)offset_now, -slope };
}

/* Collect samples for the first measurement; when there are enough, say what the frequency has to be corrected by. */
static struct ntp_servo_answer measure_frequency(struct ntp_servo *servo, const struct ntp_sample *sample,
						 int64_t now_monotonic_ns)
{
	servo->init_samples[servo->init_count] = *sample;
	servo->init_times_monotonic_ns[servo->init_count++] = now_monotonic_ns;
	if (servo->init_count < servo->settings.init_polls)
		return (struct ntp_servo_answer){ .action = NTP_WAIT };
	servo->state = NTP_LOCKED;
	servo->used_monotonic_ns = now_monotonic_ns;
	return init_fit(servo);
}

static void filter_put(struct ntp_servo *servo, const struct ntp_sample *sample, int64_t now_monotonic_ns)
{
	int kept = servo->sample_count < servo->settings.filter ? servo->sample_count : servo->settings.filter - 1;

	memmove(servo->samples + 1, servo->samples, (size_t)kept * sizeof(servo->samples[0]));
	memmove(servo->times_monotonic_ns + 1, servo->times_monotonic_ns,
		(size_t)kept * sizeof(servo->times_monotonic_ns[0]));
	servo->samples[0] = *sample;
	servo->times_monotonic_ns[0] = now_monotonic_ns;
	servo->sample_count = kept + 1;
}

/* The sample of the shortest round trip is the best of them; it is used once, and none that is older (RFC 5905, section 10). */
static struct ntp_servo_answer slew(struct ntp_servo *servo, const struct ntp_sample *sample, int64_t now_monotonic_ns)
{
	int best = 0;

	filter_put(servo, sample, now_monotonic_ns);
	for (int i = 1; i < servo->sample_count; i++)
		if (servo->samples[i].delay_ns < servo->samples[best].delay_ns)
			best = i;
	if (servo->times_monotonic_ns[best] <= servo->used_monotonic_ns)
		return (struct ntp_servo_answer){ .action = NTP_WAIT };
	servo->used_monotonic_ns = servo->times_monotonic_ns[best];
	return (struct ntp_servo_answer){ .action = NTP_SLEW, .correction_ns = -servo->samples[best].offset_ns };
}

struct ntp_servo_answer ntp_servo_take(struct ntp_servo *servo, const struct ntp_sample *sample,
				       int64_t now_monotonic_ns)
{
	const struct ntp_servo_settings *settings = &servo->settings;
	int64_t size_ns = llabs(sample->offset_ns);

	if (settings->panic_ns && size_ns > settings->panic_ns)
		return (struct ntp_servo_answer){ .action = NTP_PANIC };
	if (size_ns > settings->step_ns) {
		bool first = servo->state == NTP_INIT && !servo->init_count;

		if (first)
			return step(servo, sample->offset_ns);
		if (servo->spike_since_monotonic_ns < 0)
			servo->spike_since_monotonic_ns = now_monotonic_ns;
		if (settings->stepout_ns && now_monotonic_ns - servo->spike_since_monotonic_ns >= settings->stepout_ns)
			return step(servo, sample->offset_ns);
		return (struct ntp_servo_answer){ .action = NTP_SPIKE };
	}
	servo->spike_since_monotonic_ns = -1;
	if (servo->state == NTP_INIT)
		return measure_frequency(servo, sample, now_monotonic_ns);
	return slew(servo, sample, now_monotonic_ns);
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
