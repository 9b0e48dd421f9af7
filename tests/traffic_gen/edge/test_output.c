/* SPDX-License-Identifier: Apache-2.0 */
/* One pulse of a PTP clock's pin: its instant is of that clock, whatever this machine's own clock says. The test is the port layer. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/time_units.h"
#include "check.h"
#include "config/options.h"
#include "edge/edge_verbs.h"
#include "edge/pins/pin.h"
#include "port/port.h"
#include "port/port_edge.h"

#define SOON_NS INT64_C(200000000)

static struct {
	int64_t ahead_ns; /* of TAI */
	int64_t fired_at_phc_ns, stopped_at_phc_ns;
	int read_error;
} phc;

static int64_t phc_now_ns(void)
{
	struct port_tai tai;

	port_tai_init(&tai, TAI_UTC_DEFAULT_S);
	return port_tai_now_ns(&tai) + phc.ahead_ns;
}

/* ---- in the place of the port layer and of the table of pins -------------------------------------------------------- */

int port_ptp_pin_open(const char *path, int pin, int channel, struct port_ptp_pin **pin_out)
{
	(void)path;
	(void)pin;
	(void)channel;
	*pin_out = (struct port_ptp_pin *)(void *)&phc;
	return 0;
}

void port_ptp_pin_close(struct port_ptp_pin *pin)
{
	(void)pin;
}

int port_ptp_pin_now_ns(const struct port_ptp_pin *pin, int64_t *now_phc_ns)
{
	(void)pin;
	*now_phc_ns = phc_now_ns();
	return phc.read_error;
}

int port_ptp_pin_periodic(struct port_ptp_pin *pin, int64_t start_phc_ns, int64_t period_ns)
{
	(void)pin;
	(void)start_phc_ns;
	(void)period_ns;
	return -ENOTSUP;
}

int port_ptp_pin_one_shot(struct port_ptp_pin *pin, int64_t at_phc_ns)
{
	(void)pin;
	phc.fired_at_phc_ns = at_phc_ns;
	return 0;
}

int port_ptp_pin_stop(struct port_ptp_pin *pin)
{
	(void)pin;
	phc.stopped_at_phc_ns = phc_now_ns();
	return 0;
}

int port_ptp_pin_capture(struct port_ptp_pin *pin, enum port_ptp_edges edges)
{
	(void)pin;
	(void)edges;
	return -ENOTSUP;
}

int port_ptp_pin_captured(struct port_ptp_pin *pin, int64_t *captured_phc_ns, int64_t timeout_ns)
{
	(void)pin;
	(void)captured_phc_ns;
	(void)timeout_ns;
	return -ENOTSUP;
}

int port_ptp_pin_capture_end(struct port_ptp_pin *pin)
{
	(void)pin;
	return -ENOTSUP;
}

int edge_pin_open(struct edge_pin *pin, const char *text, int tai_utc_s, char *error, size_t error_bytes)
{
	memset(pin, 0, sizeof(*pin));
	pin->text = text;
	pin->tai_utc_s = tai_utc_s;
	pin->kind = &edge_pin_ptp;
	return edge_pin_ptp.open(pin, strchr(text, ':') + 1, error, error_bytes);
}

void edge_pin_close(struct edge_pin *pin)
{
	pin->kind->close(pin);
}

int edge_pin_exit_code(int err)
{
	(void)err;
	return EXIT_CAPABILITY;
}

/* ---- tests ---------------------------------------------------------------------------------------------------------- */

static int pulse_at(int64_t at_phc_ns)
{
	char at[32];
	char *argv[] = { "output", "--pin", "ptp:/dev/ptp7,pin=0", "--at-ns", at, NULL };

	snprintf(at, sizeof(at), "%" PRId64, at_phc_ns);
	phc.fired_at_phc_ns = phc.stopped_at_phc_ns = 0;
	return verb_output(5, argv);
}

/*
 * A card's clock that differs from the system's: the pin is not switched off before the pulse, nor is its end waited for in vain.
 * To a machine that had no time the instant has passed: it is asked for one that is twice as far away.
 */
static void test_instant_is_of_the_pins_clock(int64_t ahead_ns)
{
	int64_t at_phc_ns = 0;
	int code = EXIT_INVALID;

	phc.ahead_ns = ahead_ns;
	for (int64_t lead_ns = SOON_NS; code == EXIT_INVALID && lead_ns < 20 * NS_PER_S; lead_ns *= 2) {
		at_phc_ns = phc_now_ns() + lead_ns;
		code = pulse_at(at_phc_ns);
	}
	CHECK_INT(code, EXIT_DONE);
	CHECK_INT(phc.fired_at_phc_ns, at_phc_ns);
	CHECK_THAT(phc.stopped_at_phc_ns > at_phc_ns, "stopped %" PRId64 " ns before the pulse",
		   at_phc_ns - phc.stopped_at_phc_ns);
	CHECK_THAT(phc.stopped_at_phc_ns < at_phc_ns + 60 * NS_PER_S, "stopped long after the pulse");
}

static void test_instant_that_has_passed_makes_no_pulse(void)
{
	phc.ahead_ns = 1000 * NS_PER_S;
	CHECK_INT(pulse_at(phc_now_ns() - NS_PER_S), EXIT_INVALID);
	CHECK_INT(phc.fired_at_phc_ns, 0);
}

static void test_clock_that_cannot_be_read_is_an_error(void)
{
	phc.ahead_ns = 0;
	phc.read_error = -ENODEV;
	CHECK_INT(pulse_at(phc_now_ns() + SOON_NS), EXIT_CAPABILITY);
	phc.read_error = 0;
}

int main(void)
{
	test_instant_is_of_the_pins_clock(0);
	test_instant_is_of_the_pins_clock(-1000 * NS_PER_S);
	test_instant_is_of_the_pins_clock(1000 * NS_PER_S);
	test_instant_that_has_passed_makes_no_pulse();
	test_clock_that_cannot_be_read_is_an_error();
	return check_result();
}
