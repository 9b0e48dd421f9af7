/* SPDX-License-Identifier: Apache-2.0 */
/** The client's servo: one step at the start, a frequency from the first samples, the best of eight, no faith in spikes. */
#include <math.h>
#include <stdlib.h>

#include "../traffic_gen/check.h"
#include "base/time_units.h"
#include "ntp_servo.h"

#define GAIN_NS INT64_C(40000) /* of the clock, every second */

static const struct ntp_servo_settings settings = {
	.step_ns = 128 * NS_PER_MS,
	.stepout_ns = 300 * NS_PER_S,
	.panic_ns = 10 * NS_PER_S,
	.init_polls = 8,
	.filter = 8,
};

static struct ntp_servo_answer take(struct ntp_servo *servo, int64_t offset_ns, int64_t delay_ns, int64_t now_s)
{
	struct ntp_sample sample = { offset_ns, delay_ns };

	return ntp_servo_take(servo, &sample, now_s * NS_PER_S);
}

static void test_first_offset_is_stepped_out_once(void)
{
	struct ntp_servo servo;
	struct ntp_servo_answer answer;

	ntp_servo_init(&servo, &settings);
	answer = take(&servo, -2 * NS_PER_S, NS_PER_MS, 0);
	CHECK_INT(answer.action, NTP_STEP);
	CHECK_INT(answer.correction_ns, 2 * NS_PER_S);
	CHECK_INT(take(&servo, NS_PER_MS, NS_PER_MS, 1).action, NTP_WAIT);
	CHECK_INT(take(&servo, 200 * NS_PER_MS, NS_PER_MS, 2).action, NTP_SPIKE);
	CHECK_INT(servo.state, NTP_INIT);
}

/* This clock gains 40 us a second: its frequency has to come down by 40 ppm, and the offset of the last moment to go. */
static struct ntp_servo locked(void)
{
	struct ntp_servo servo;
	struct ntp_servo_answer answer = { .action = NTP_WAIT };

	ntp_servo_init(&servo, &settings);
	for (int second = 0; second < settings.init_polls; second++) {
		CHECK_INT(answer.action, NTP_WAIT);
		answer = take(&servo, 5 * NS_PER_MS + second * GAIN_NS, NS_PER_MS, second);
	}
	CHECK_INT(answer.action, NTP_SET);
	CHECK_THAT(fabs(answer.frequency_ppb + 40000.0) < 1.0, "%g ppb", answer.frequency_ppb);
	CHECK_THAT(llabs(answer.correction_ns + 5 * NS_PER_MS + 7 * GAIN_NS) < 10, "%" PRId64, answer.correction_ns);
	CHECK_INT(servo.state, NTP_LOCKED);
	return servo;
}

static void test_packets_that_were_held_up_do_not_spoil_the_frequency(void)
{
	struct ntp_servo servo;
	struct ntp_servo_answer answer = { .action = NTP_WAIT };

	ntp_servo_init(&servo, &settings);
	for (int second = 0; second < settings.init_polls; second++) {
		int64_t held_ns = second % 3 == 2 || second == settings.init_polls - 1 ? 90 * NS_PER_MS : 0;

		answer = take(&servo, second * GAIN_NS - held_ns, NS_PER_MS + 2 * held_ns, second);
	}
	CHECK_INT(answer.action, NTP_SET);
	CHECK_THAT(fabs(answer.frequency_ppb + 40000.0) < 1.0, "%g ppb", answer.frequency_ppb);
	CHECK_THAT(llabs(answer.correction_ns + 7 * GAIN_NS) < 10, "%" PRId64, answer.correction_ns);
}

static void test_best_of_the_filter_is_used_once(void)
{
	struct ntp_servo servo = locked();
	struct ntp_servo_answer answer = take(&servo, 1000, 3 * NS_PER_MS, 10);

	CHECK_INT(answer.action, NTP_SLEW);
	CHECK_INT(answer.correction_ns, -1000);
	/* A longer round trip: the former sample is still the best, and was used. */
	CHECK_INT(take(&servo, 900000, 5 * NS_PER_MS, 11).action, NTP_WAIT);
	answer = take(&servo, -2000, 2 * NS_PER_MS, 12);
	CHECK_INT(answer.action, NTP_SLEW);
	CHECK_INT(answer.correction_ns, 2000);
	for (int second = 13; second < 20; second++)
		CHECK_INT(take(&servo, second * INT64_C(100), (second < 17 ? 4 : 3) * NS_PER_MS, second).action, NTP_WAIT);
	/* The best one has left the filter of eight; of those behind it the shortest is the one of second 19 or before. */
	answer = take(&servo, 77, 4 * NS_PER_MS, 20);
	CHECK_INT(answer.action, NTP_SLEW);
	CHECK_INT(answer.correction_ns, -1900);
}

static void test_without_a_filter_each_sample_counts(void)
{
	struct ntp_servo servo = locked();

	servo.settings.filter = 1;
	for (int second = 10; second < 20; second++)
		CHECK_INT(take(&servo, 1000, second * NS_PER_MS, second).action, NTP_SLEW);
}

static void test_spike_is_refused_until_it_lasts(void)
{
	struct ntp_servo servo = locked();
	struct ntp_servo_answer answer;

	CHECK_INT(take(&servo, 200 * NS_PER_MS, NS_PER_MS, 100).action, NTP_SPIKE);
	CHECK_INT(take(&servo, 0, NS_PER_MS, 200).action, NTP_SLEW);
	for (int second = 300; second < 600; second++)
		CHECK_INT(take(&servo, 200 * NS_PER_MS, NS_PER_MS, second).action, NTP_SPIKE);
	answer = take(&servo, 200 * NS_PER_MS, NS_PER_MS, 600);
	CHECK_INT(answer.action, NTP_STEP);
	CHECK_INT(answer.correction_ns, -200 * NS_PER_MS);
	servo.settings.stepout_ns = 0;
	for (int second = 700; second < 2000; second += 100)
		CHECK_INT(take(&servo, 200 * NS_PER_MS, NS_PER_MS, second).action, NTP_SPIKE);
}

static void test_panic(void)
{
	struct ntp_servo servo;

	ntp_servo_init(&servo, &settings);
	CHECK_INT(take(&servo, 3600 * NS_PER_S, NS_PER_MS, 0).action, NTP_PANIC);
	CHECK_INT(take(&servo, -11 * NS_PER_S, NS_PER_MS, 0).action, NTP_PANIC);
	servo = locked();
	CHECK_INT(take(&servo, 3600 * NS_PER_S, NS_PER_MS, 100).action, NTP_PANIC);
	servo.settings.panic_ns = 0;
	CHECK_INT(take(&servo, 3600 * NS_PER_S, NS_PER_MS, 100).action, NTP_SPIKE);
}

static void test_time_constant(void)
{
	CHECK_INT(ntp_time_constant(10), 0);
	CHECK_INT(ntp_time_constant(16000), 0);
	CHECK_INT(ntp_time_constant(32000), 1);
	CHECK_INT(ntp_time_constant(64000), 2);
	CHECK_INT(ntp_time_constant(960000), 5);
	CHECK_INT(ntp_time_constant(1024000), 6);
	CHECK_INT(ntp_time_constant(INT64_C(100000000000)), 10);
}

int main(void)
{
	test_first_offset_is_stepped_out_once();
	test_packets_that_were_held_up_do_not_spoil_the_frequency();
	test_best_of_the_filter_is_used_once();
	test_without_a_filter_each_sample_counts();
	test_spike_is_refused_until_it_lasts();
	test_panic();
	test_time_constant();
	return check_result();
}
