/* SPDX-License-Identifier: Apache-2.0 */
#include "timeservice/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/time_units.h"
#include "port/port.h"
#include "port/port_clock.h"

void timed_log_init(struct timed_log *log, FILE *out, int tai_utc_s)
{
	json_init(&log->json, out);
	log->tai_utc_s = tai_utc_s;
	memset(log->root_distances_ns, 0, sizeof(log->root_distances_ns));
}

static void line_begin(struct timed_log *log, const char *type)
{
	json_object_open(&log->json, NULL);
	json_string(&log->json, "type", type);
	json_int(&log->json, "time_tai_ns", port_clock_now_ns(PORT_CLOCK_REALTIME) + log->tai_utc_s * NS_PER_S);
	json_int(&log->json, "monotonic_ns", port_clock_now_ns(PORT_CLOCK_MONOTONIC));
}

static int line_end(struct timed_log *log, const char *state)
{
	json_string(&log->json, "state", state);
	json_object_close(&log->json);
	return json_line_end(&log->json);
}

static void put_server(struct timed_log *log, const struct server *server)
{
	char text[ADDRESS_TEXT_BYTES];

	json_string(&log->json, "server", address_format(&server->settings.address, text));
}

/* Whether the hypervisor's page is read. */
static const char *vmclock_word(const struct counter_check *counter)
{
	return !counter->vmclock_error ? "read" : counter->vmclock_error == -ENOENT ? "absent" : strerror(-counter->vmclock_error);
}

int timed_log_ready(struct timed_log *log, const char *state, const struct settings *settings, const struct local_time *local,
		    const char *page, const struct counter_check *counter)
{
	char text[ADDRESS_TEXT_BYTES];

	line_begin(log, "ready");
	json_string(&log->json, "tool", TIMED_TOOL);
	json_array_open(&log->json, "servers");
	for (int i = 0; i < settings->server_count; i++)
		json_string(&log->json, NULL, address_format(&settings->servers[i].address, text));
	json_array_close(&log->json);
	json_array_open(&log->json, "keys");
	for (int i = 0; i < settings->server_count; i++)
		json_uint(&log->json, NULL, settings->servers[i].key);
	json_array_close(&log->json);
	json_int(&log->json, "interval_ms", settings->interval_ms);
	json_int(&log->json, "batch", settings->batch);
	json_array_open(&log->json, "min_delays_ns");
	for (int i = 0; i < settings->server_count; i++)
		json_int(&log->json, NULL, settings->servers[i].min_way_ns);
	json_array_close(&log->json);
	json_int(&log->json, "drift_limit_ppb", settings->estimate.drift_limit_ppb);
	json_int(&log->json, "rate_limit_ppb", settings->estimate.rate_limit_ppb);
	json_int(&log->json, "asymmetry_percent", settings->estimate.asymmetry_percent);
	json_string(&log->json, "counter", port_counter_kind() == PORT_COUNTER_TSC ? "tsc" : "cntvct");
	json_uint(&log->json, "counter_hz", local->hz);
	json_uint(&log->json, "origin_ticks", local->origin_ticks);
	json_int(&log->json, "origin_local_ns", local->origin_local_ns);
	json_bool(&log->json, "log_exchanges", settings->log_exchanges);
	json_string(&log->json, "page", page);
	json_string(&log->json, "vmclock", vmclock_word(counter));
	return line_end(log, state);
}

/* What the line was computed from besides the exchanges, and the line. */
static void put_line(struct timed_log *log, const struct timed_sync *sync)
{
	json_array_open(&log->json, "usable");
	for (int i = 0; i < sync->candidate_count; i++)
		json_bool(&log->json, NULL, sync->candidates[i].usable);
	json_array_close(&log->json);
	json_uint(&log->json, "at_ticks", sync->at_ticks);
	json_int(&log->json, "line_offset_ns", sync->line.offset_ns);
	json_double(&log->json, "line_rate_ppb", sync->line.rate_ppb);
	json_int(&log->json, "line_low_ns", sync->line.low_ns);
	json_int(&log->json, "line_high_ns", sync->line.high_ns);
	json_int(&log->json, "line_growth_ppb", sync->line.growth_ppb);
	json_double(&log->json, "line_u_ns", scatter_u_ns(&sync->line.scatter, 0));
}

int timed_log_sync(struct timed_log *log, const char *state, const struct timed_sync *sync)
{
	line_begin(log, "sync");
	json_int(&log->json, "offset_ns", sync->offset_ns);
	json_int(&log->json, "delay_ns", sync->delay_ns);
	json_int(&log->json, "bound_ns", sync->bound_ns);
	json_int(&log->json, "u_ns", sync->u_ns);
	json_double(&log->json, "freq_ppb", sync->rate_ppb);
	json_string(&log->json, "stamps", sync->kernel_stamps ? "kernel" : "user");
	json_bool(&log->json, "interleaved", sync->interleaved);
	json_int(&log->json, "servers", sync->servers);
	json_uint(&log->json, "epoch", sync->epoch);
	if (sync->candidates)
		put_line(log, sync);
	return line_end(log, state);
}

static void exchange_begin(struct timed_log *log, int server)
{
	json_object_open(&log->json, NULL);
	json_string(&log->json, "type", "exchange");
	json_int(&log->json, "index", server);
}

/* The raw counter where there is one. */
static void put_stamps(struct timed_log *log, const struct exchange_stamps *stamps)
{
	if (stamps->kernel) {
		json_int(&log->json, "t1_local_ns", stamps->t1_local_ns);
		json_int(&log->json, "away_ns", stamps->t4_local_ns - stamps->t1_local_ns);
	} else {
		json_uint(&log->json, "t1_ticks", stamps->t1_ticks);
		json_uint(&log->json, "away_ticks", stamps->t4_ticks - stamps->t1_ticks);
	}
	json_int(&log->json, "error_ns", stamps->error_ns);
}

/* End the line of an exchange. The root distance is told where it has changed: it seldom does. */
static int exchange_end(struct timed_log *log, int server, int64_t root_distance_ns)
{
	if (root_distance_ns != log->root_distances_ns[server])
		json_int(&log->json, "root_distance_ns", root_distance_ns);
	log->root_distances_ns[server] = root_distance_ns;
	json_object_close(&log->json);
	return json_line_end(&log->json);
}

int timed_log_sample(struct timed_log *log, int server, uint64_t batch, const struct exchange_sample *sample)
{
	exchange_begin(log, server);
	json_uint(&log->json, "batch", batch);
	put_stamps(log, &(struct exchange_stamps){ sample->t1_local_ns, sample->t4_local_ns, sample->t1_ticks, sample->t4_ticks,
						   sample->error_ns, sample->kernel_stamps });
	json_int(&log->json, "t2_utc_ns", sample->t2_utc_ns);
	json_int(&log->json, "held_ns", sample->t3_utc_ns - sample->t2_utc_ns);
	json_int(&log->json, "precision_ns", sample->precision_ns);
	json_bool(&log->json, "interleaved", sample->interleaved);
	return exchange_end(log, server, sample->root_distance_ns);
}

int timed_log_check(struct timed_log *log, int server, const struct exchange_stamps *stamps, int64_t t2_utc_ns,
		    int64_t root_distance_ns)
{
	exchange_begin(log, server);
	put_stamps(log, stamps);
	json_int(&log->json, "t2_utc_ns", t2_utc_ns);
	return exchange_end(log, server, root_distance_ns);
}

int timed_log_rejected(struct timed_log *log, const char *state, const struct server *server, unsigned int reject)
{
	char text[16];

	line_begin(log, "rejected");
	put_server(log, server);
	json_string(&log->json, "reason", exchange_reject_name(reject));
	if (reject == NTP_KISS_OF_DEATH) {
		json_string(&log->json, "detail", server->said.kiss);
	} else if (reject == NTP_STRATUM) {
		snprintf(text, sizeof(text), "stratum %u", server->said.stratum);
		json_string(&log->json, "detail", text);
	}
	return line_end(log, state);
}

int timed_log_more_rejected(struct timed_log *log, const char *state, int64_t count)
{
	line_begin(log, "rejected");
	json_string(&log->json, "reason", "more");
	json_int(&log->json, "count", count);
	return line_end(log, state);
}

int timed_log_page(struct timed_log *log, const char *state, const char *what)
{
	line_begin(log, "page");
	json_string(&log->json, "reason", what);
	return line_end(log, state);
}

int timed_log_state(struct timed_log *log, const char *state, uint32_t page_state, uint32_t reason)
{
	line_begin(log, "state");
	json_string(&log->json, "page_state", timepage_state_name(page_state));
	json_string(&log->json, "reason", timepage_reason_name(reason));
	return line_end(log, state);
}

int timed_log_step(struct timed_log *log, const char *state, int64_t step_ns, uint64_t epoch)
{
	line_begin(log, "step");
	json_int(&log->json, "step_ns", step_ns);
	json_uint(&log->json, "epoch", epoch);
	return line_end(log, state);
}

int timed_log_contradiction(struct timed_log *log, const char *state, const struct server *server, int64_t step_ns)
{
	line_begin(log, "contradiction");
	put_server(log, server);
	json_int(&log->json, "step_ns", step_ns);
	return line_end(log, state);
}

int timed_log_counter(struct timed_log *log, const char *reason, bool used)
{
	line_begin(log, used ? "counter" : "refused");
	json_string(&log->json, "reason", reason);
	return line_end(log, used ? "init" : "unsynchronised");
}
