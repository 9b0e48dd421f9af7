/* SPDX-License-Identifier: Apache-2.0 */
#include "ntp_discipline.h"

/* Add to the frequency in force, as far as the clock goes. */
static int add_frequency(const struct frequency_clock *clock, double ppb)
{
	double now_ppb;
	int err = frequency_get(clock, &now_ppb);

	if (err)
		return err;
	ppb += now_ppb;
	if (ppb > clock->max_ppb)
		ppb = clock->max_ppb;
	if (ppb < -clock->max_ppb)
		ppb = -clock->max_ppb;
	return frequency_set(clock, ppb);
}

int ntp_discipline(const struct frequency_clock *clock, const struct ntp_servo_answer *answer, int64_t constant)
{
	int err;

	switch (answer->action) {
	case NTP_STEP:
		err = frequency_clock_step(clock, answer->correction_ns);
		return err ? err : frequency_loop_slew(0, constant);
	case NTP_SET:
		err = add_frequency(clock, answer->frequency_ppb);
		return err ? err : frequency_loop_slew(answer->correction_ns, constant);
	case NTP_SLEW:
		return frequency_loop_slew(answer->correction_ns, constant);
	case NTP_WAIT:
	case NTP_SPIKE:
	case NTP_PANIC:
		break;
	}
	return 0;
}
