/* SPDX-License-Identifier: Apache-2.0 */
#include "ntp_log.h"

#include "base/time_units.h"
#include "port/port.h"

static void line_begin(struct ntp_log *log, const char *type, int64_t realtime_ns)
{
	json_object_open(log->json, NULL);
	json_string(log->json, "type", type);
	json_int(log->json, "time_tai_ns", realtime_ns + log->tai_utc_s * NS_PER_S);
	json_int(log->json, "monotonic_ns", port_clock_now_ns(PORT_CLOCK_MONOTONIC));
}

static int line_end(struct ntp_log *log, const char *state)
{
	json_string(log->json, "state", state);
	json_object_close(log->json);
	return json_line_end(log->json);
}

int ntp_log_ready(struct ntp_log *log, const char *state, const struct address *server, int64_t interval_ms, int64_t constant,
		  bool discipline)
{
	char text[ADDRESS_TEXT_BYTES];

	line_begin(log, "ready", port_clock_now_ns(PORT_CLOCK_REALTIME));
	json_string(log->json, "tool", NTP_TOOL);
	json_string(log->json, "server", address_format(server, text));
	json_int(log->json, "interval_ms", interval_ms);
	json_int(log->json, "time_constant", constant);
	json_bool(log->json, "discipline", discipline);
	return line_end(log, state);
}

int ntp_log_state(struct ntp_log *log, const char *state)
{
	line_begin(log, "state", port_clock_now_ns(PORT_CLOCK_REALTIME));
	return line_end(log, state);
}

int ntp_log_rejected(struct ntp_log *log, const char *state, const char *reason, const char *detail)
{
	line_begin(log, "rejected", port_clock_now_ns(PORT_CLOCK_REALTIME));
	json_string(log->json, "reason", reason);
	if (detail)
		json_string(log->json, "detail", detail);
	return line_end(log, state);
}

int ntp_log_poll(struct ntp_log *log, const char *state, const struct ntp_sample *sample, int64_t received_realtime_ns,
		 double frequency_ppb, int64_t step_ns)
{
	line_begin(log, "poll", received_realtime_ns);
	json_int(log->json, "offset_ns", sample->offset_ns);
	json_int(log->json, "delay_ns", sample->delay_ns);
	json_double(log->json, "freq_ppb", frequency_ppb);
	if (step_ns)
		json_int(log->json, "step_ns", step_ns);
	return line_end(log, state);
}
