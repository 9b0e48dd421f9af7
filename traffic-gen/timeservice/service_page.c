/* SPDX-License-Identifier: Apache-2.0 */
#include "timeservice/service_page.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/time_units.h"
#include "port/port.h"
#include "port/port_clock.h"
#include "version.h"

_Static_assert(EXCHANGE_UTC_MAX_NS < TIMEPAGE_UTC_MAX_NS - 2 * TIMEPAGE_AGE_MAX_NS, "what servers say can be published");
_Static_assert((int)EXCHANGE_REJECTS <= (int)TIMEPAGE_REJECTS, "reasons of a server");

/* ---- the line ---------------------------------------------------------------------------------------------------- */

static bool is_usable(const struct service *service, const struct server *server)
{
	return estimate_current(server->estimate).valid && server->reach && !server->denied && !server->contradicted &&
	       (int64_t)estimate_batches(server->estimate) >= service->settings->confirm_batches;
}

/* Select among the servers. Returns how many were combined. */
static int select_now(struct service *service, int64_t at_local_ns, struct estimate_line *line)
{
	for (int i = 0; i < service->settings->server_count; i++) {
		const struct server *server = &service->servers[i];

		service->candidates[i] = (struct select_candidate){
			.usable = is_usable(service, server),
			.line = estimate_current(server->estimate),
		};
	}
	return select_line(service->candidates, service->settings->server_count, at_local_ns, line);
}

/* The best server; NULL: none. */
static const struct server *best_server(const struct service *service)
{
	for (int i = 0; i < service->settings->server_count; i++)
		if (service->candidates[i].role == SELECT_BEST)
			return &service->servers[i];
	return NULL;
}

/* Of the last exchange with a server that is combined; of the page's line where there is none now. */
static uint64_t heard_ticks(const struct service *service)
{
	uint64_t latest_ticks = service->before.heard_ticks;

	for (int i = 0; i < service->settings->server_count; i++)
		if ((service->candidates[i].role == SELECT_BEST || service->candidates[i].role == SELECT_COMBINED) &&
		    (int64_t)(service->servers[i].heard_ticks - latest_ticks) > 0)
			latest_ticks = service->servers[i].heard_ticks;
	return latest_ticks;
}

static bool had_time(const struct timepage_line *line)
{
	return publish_gives_time(line->state) && timepage_usable_ticks(line);
}

static struct publish_words words_of(const struct service *service, uint32_t state, uint32_t reason)
{
	const struct server *best = best_server(service);
	struct publish_words words = {
		.state = state,
		.reason = reason,
		.leap = service->before.leap,
		.stratum = service->before.stratum,
		.tai_utc_s = service->settings->tai_utc_s ? (int32_t)service->settings->tai_utc_s + service->leaps_s : 0,
		.now_ticks = port_counter_read(),
		.heard_ticks = heard_ticks(service),
		.disrupted = !publish_gives_time(state) && had_time(&service->before),
	};

	if (best) {
		words.leap = (int32_t)best->relied.leap;
		words.stratum = (int32_t)best->relied.stratum + 1;
	}
	return words;
}

/* When UTC is behind the leap second that a line ends for, whatever the interval; 0: it does not. */
static int64_t leap_over_monotonic_ns(const struct timepage_line *line)
{
	int64_t low_ns, high_ns, left_ns;

	if (!timepage_ends_at_leap(line))
		return 0;
	timepage_interval_ns(line, line->usable_until_ticks, &low_ns, &high_ns);
	left_ns = timepage_utc_ns(line, line->usable_until_ticks) - timepage_utc_ns(line, port_counter_read());
	return port_clock_now_ns(PORT_CLOCK_MONOTONIC) + left_ns + low_ns + high_ns + NS_PER_MS;
}

/* Publish, and tell of a change of the state. Returns 0 or -errno. */
static int put(struct service *service, const struct timepage_line *next)
{
	bool changed = next->state != service->state || next->reason != service->reason;
	int err = timepage_publish(service->page, next);

	if (err)
		return err;
	service->before = *timepage_last(service->page);
	service->leap_over_monotonic_ns = leap_over_monotonic_ns(&service->before);
	service->state = next->state;
	service->reason = next->reason;
	return changed ? timed_log_state(service->log, service_state_word(service), service->state, service->reason) : 0;
}

int service_withdraw(struct service *service, uint32_t state, uint32_t reason)
{
	struct publish_words words = words_of(service, state, reason);
	struct timepage_line next;

	publish_withdraw(&service->before, &words, &next);
	service->line.valid = false;
	return put(service, &next);
}

static int64_t bound_of(const struct timepage_line *line)
{
	return timepage_bound_ns(line, line->base_ticks);
}

static void remember(struct service *service, int64_t offset_ns, int64_t utc_ns)
{
	struct timepage_status *status = &service->status;

	if (status->history_count == TIMEPAGE_HISTORY) {
		memmove(status->history, status->history + 1, (TIMEPAGE_HISTORY - 1) * sizeof(status->history[0]));
		status->history_count--;
	}
	status->history[status->history_count++] = (struct timepage_moment){
		.utc_ns = utc_ns,
		.offset_ns = offset_ns,
		.bound_ns = bound_of(&service->before),
		.u_ns = timepage_u_ns(&service->before, service->before.base_ticks),
		.rate_ppb = -llround(service->line.rate_ppb),
	};
}

/* Why a server is not heard: what it has answered, or its silence. */
static uint32_t unheard_reason(const struct server *server)
{
	if (exchange_reject_is_of_key(server->last_reject))
		return TIMEPAGE_REASON_NOT_AUTHENTICATED;
	if (server->denied)
		return TIMEPAGE_REASON_DENIED;
	if (server->last_reject == NTP_KISS_OF_DEATH && strcmp(server->said.kiss, "RATE") == 0)
		return TIMEPAGE_REASON_RATE;
	if (server->last_reject >= NTP_KISS_OF_DEATH && server->last_reject < NTP_REJECTS)
		return TIMEPAGE_REASON_SERVER_UNSYNCHRONISED;
	return TIMEPAGE_REASON_NO_SERVER;
}

/* Why none is heard: of the first that answers. */
static uint32_t all_unheard_reason(const struct service *service)
{
	uint32_t reason = TIMEPAGE_REASON_NO_SERVER;
	int denied = 0;

	for (int i = 0; i < service->settings->server_count; i++) {
		uint32_t own = unheard_reason(&service->servers[i]);

		if (own == TIMEPAGE_REASON_DENIED)
			denied++;
		else if (reason == TIMEPAGE_REASON_NO_SERVER)
			reason = own;
	}
	return denied == service->settings->server_count ? TIMEPAGE_REASON_DENIED : reason;
}

/* What there is to say of a server for that reason; false: nothing. */
static bool answer_text(const struct server *server, uint32_t reason, char text[TIMEPAGE_TEXT_BYTES])
{
	const struct exchange_server *said = &server->said;
	char address[ADDRESS_TEXT_BYTES];

	address_format(&server->settings.address, address);
	if (reason == TIMEPAGE_REASON_NOT_AUTHENTICATED && exchange_reject_is_of_key(server->last_reject))
		snprintf(text, TIMEPAGE_TEXT_BYTES, "%s, key %" PRIu32 ": %s", address, server->settings.key,
			 exchange_reject_name(server->last_reject));
	else if (reason == TIMEPAGE_REASON_NO_SERVER && server->settings.key && !server->answered_ever &&
		 server->last_reject == EXCHANGE_NO_ANSWER)
		/* Many servers keep silent where a request is not authenticated as they want it, chrony for one. */
		snprintf(text, TIMEPAGE_TEXT_BYTES, "%s, key %" PRIu32 ": silent so far, as many servers are when they have another key",
			 address, server->settings.key);
	else if (reason == unheard_reason(server) && server->last_reject == NTP_KISS_OF_DEATH)
		snprintf(text, TIMEPAGE_TEXT_BYTES, "%s: %s %s", address, exchange_reject_name(server->last_reject), said->kiss);
	else if (reason == unheard_reason(server) && reason != TIMEPAGE_REASON_NO_SERVER)
		snprintf(text, TIMEPAGE_TEXT_BYTES, "%s: %s (leap %u, stratum %u)", address, exchange_reject_name(server->last_reject),
			 said->leap, said->stratum);
	else
		return false;
	return true;
}

/* Name the server whose answer, or whose key, is why there is no time. */
static void tell_answer(struct service *service, uint32_t reason)
{
	if (service->answer_told)
		service->status.text[0] = '\0';
	service->answer_told = false;
	for (int i = 0; i < service->settings->server_count && !service->answer_told; i++)
		service->answer_told = answer_text(&service->servers[i], reason, service->status.text);
}

/* A step of a second that was announced changes TAI - UTC. */
static void count_leap(struct service *service, int64_t step_ns, struct timepage_line *next)
{
	int32_t leap = service->before.leap, leap_s = leap == 1 ? 1 : leap == 2 ? -1 : 0;

	if (!leap_s || llabs(step_ns + leap_s * NS_PER_S) > NS_PER_S / 2)
		return;
	service->leaps_s += leap_s;
	if (next->tai_utc_s)
		next->tai_utc_s += leap_s;
}

/* Publish what the servers say. */
static int publish_selected(struct service *service, const struct estimate_line *line, uint64_t now_ticks, bool heard, bool told)
{
	struct publish_words words = words_of(service, heard ? TIMEPAGE_SYNCHRONISED : TIMEPAGE_HOLDOVER,
					      heard ? TIMEPAGE_REASON_NONE : all_unheard_reason(service));
	const struct server *best = best_server(service);
	uint64_t epoch = service->before.epoch;
	struct timepage_line next;
	struct timed_sync sync;
	int64_t correction_ns;
	int err;

	correction_ns = publish_line(&service->settings->publish, &service->context.local, line, now_ticks, &service->before, &words,
				     &next);
	if (next.epoch != epoch)
		count_leap(service, correction_ns, &next);
	service->line = *line;
	service->status.text[0] = '\0';
	tell_answer(service, words.reason);
	err = put(service, &next);
	if (!err && service->before.epoch != epoch) {
		service->status.steps++;
		err = timed_log_step(service->log, service_state_word(service), correction_ns, service->before.epoch);
	}
	if (err || !told)
		return err;
	sync = (struct timed_sync){
		.offset_ns = -correction_ns,
		.delay_ns = best ? estimate_delay_ns(best->estimate) : 0,
		.bound_ns = bound_of(&service->before),
		.u_ns = timepage_u_ns(&service->before, service->before.base_ticks),
		.rate_ppb = -line->rate_ppb,
		.kernel_stamps = best && best->kernel_stamps,
		.interleaved = best && best->interleaved,
		.servers = service->combined,
		.epoch = service->before.epoch,
		.candidates = service->settings->log_exchanges ? service->candidates : NULL,
		.candidate_count = service->settings->server_count,
		.at_ticks = now_ticks,
		.line = *line,
	};
	remember(service, sync.offset_ns, service->before.base_utc_ns);
	return timed_log_sync(service->log, service_state_word(service), &sync);
}

/* Why there is nothing to select from. */
static uint32_t reason_of(const struct service *service, bool *contradicted)
{
	bool starting = service->status.batches == 0;

	*contradicted = false;
	for (int i = 0; i < service->settings->server_count; i++) {
		const struct server *server = &service->servers[i];

		*contradicted = *contradicted || server->contradicted || service->candidates[i].usable;
		if (server->contradicted)
			return TIMEPAGE_REASON_CONTRADICTION;
		if (service->candidates[i].usable)
			return TIMEPAGE_REASON_NO_MAJORITY;
		starting = starting || (server->reach & 1);
	}
	return starting ? TIMEPAGE_REASON_STARTING : all_unheard_reason(service);
}

/* A time of an earlier service, or of earlier batches, that still holds. */
static bool still_holds(const struct service *service)
{
	return publish_continues(&service->before) && publish_gives_time(service->before.state) &&
	       (int64_t)(service->before.usable_until_ticks - port_counter_read()) > 0;
}

int service_publish(struct service *service, bool told)
{
	uint64_t now_ticks = port_counter_read();
	struct estimate_line line;
	bool heard = false, contradicted;
	uint32_t reason;

	service->combined = select_now(service, local_from_ticks(&service->context.local, now_ticks), &line);
	for (int i = 0; i < service->settings->server_count; i++)
		heard = heard || (service->candidates[i].usable && (service->servers[i].reach & 1));
	if (service->combined >= service->settings->min_servers)
		return publish_selected(service, &line, now_ticks, heard, told);
	reason = reason_of(service, &contradicted);
	tell_answer(service, reason);
	if (contradicted)
		return service_withdraw(service, TIMEPAGE_UNSYNCHRONISED, reason);
	if (still_holds(service))
		return service_publish_again(service, TIMEPAGE_HOLDOVER, reason);
	return service_withdraw(service, service->state == TIMEPAGE_UNSYNCHRONISED ? TIMEPAGE_UNSYNCHRONISED : TIMEPAGE_STARTING, reason);
}

bool service_settled(const struct service *service)
{
	const struct timepage_line *line = &service->before;

	return service->line.valid && line->settled_ticks != line->base_ticks &&
	       (int64_t)(port_counter_read() - line->settled_ticks) > 0;
}

int service_publish_again(struct service *service, uint32_t state, uint32_t reason)
{
	struct publish_words words = words_of(service, state, reason);
	struct timepage_line next;

	if (service->line.valid && service_settled(service))
		publish_line(&service->settings->publish, &service->context.local, &service->line, port_counter_read(), &service->before,
			     &words, &next);
	else
		publish_withdraw(&service->before, &words, &next);
	return put(service, &next);
}

/* ---- the status -------------------------------------------------------------------------------------------------- */

static uint32_t server_state(const struct service *service, int index)
{
	const struct server *server = &service->servers[index];

	if (server->denied)
		return TIMEPAGE_SERVER_DENIED;
	switch (service->candidates[index].role) {
	case SELECT_BEST:
		return TIMEPAGE_SERVER_SELECTED;
	case SELECT_COMBINED:
		return TIMEPAGE_SERVER_COMBINED;
	case SELECT_FALSETICKER:
		return TIMEPAGE_SERVER_FALSETICKER;
	case SELECT_OUTLYING:
		return TIMEPAGE_SERVER_UNFIT;
	case SELECT_UNUSED:
		break;
	}
	if (server->reach || unheard_reason(server) != TIMEPAGE_REASON_NO_SERVER)
		return TIMEPAGE_SERVER_UNFIT;
	return server->sent ? TIMEPAGE_SERVER_UNREACHABLE : TIMEPAGE_SERVER_UNKNOWN;
}

static void put_server(const struct service *service, int index, uint64_t now_ticks, struct timepage_server *out)
{
	const struct server *server = &service->servers[index];
	struct estimate_line line = estimate_current(server->estimate);
	int64_t now_local_ns = local_from_ticks(&service->context.local, now_ticks);
	char text[ADDRESS_TEXT_BYTES];

	memset(out, 0, sizeof(*out));
	snprintf(out->address, sizeof(out->address), "%s", address_format(&server->settings.address, text));
	out->state = server_state(service, index);
	out->reach = server->reach;
	out->stratum = (int32_t)server->said.stratum;
	out->leap = (int32_t)server->said.leap;
	out->kernel_stamps = server->kernel_stamps;
	out->interleaved = server->interleaved;
	out->authenticated = server->settings.key && server->answered_ever;
	out->key = server->settings.key;
	out->heard_ticks = server->heard_ticks;
	out->root_dispersion_ns = server->relied.root_distance_ns;
	out->sent = server->sent;
	out->received = server->received;
	if (line.valid) {
		double bound_ns = (double)(line.low_ns > line.high_ns ? line.low_ns : line.high_ns) +
				  estimate_growth_at(&line, now_local_ns);

		if (publish_continues(&service->before))
			out->offset_ns = timepage_utc_ns(&service->before, now_ticks) -
					 (now_local_ns + estimate_offset_at(&line, now_local_ns));
		out->delay_ns = estimate_delay_ns(server->estimate);
		out->bound_ns = bound_ns < 9e18 ? (int64_t)bound_ns : INT64_MAX;
	}
	for (int i = 0; i < EXCHANGE_REJECTS; i++)
		out->rejected[i] = server->exchange.counts[i];
}

void service_publish_status(struct service *service)
{
	struct timepage_status *status = &service->status;
	uint64_t now_ticks = port_counter_read();

	snprintf(status->version, sizeof(status->version), "%s", BW_VERSION);
	status->interval_ns = service->settings->interval_ms * NS_PER_MS;
	status->counter_kind = port_counter_kind();
	status->counter_hz = service->context.local.hz;
	status->rate_ppb = service->line.valid ? -llround(service->line.rate_ppb) : 0;
	status->holding = service->held;
	status->feed = (uint64_t)service->settings->feed;
	status->server_count = (uint64_t)service->settings->server_count;
	for (int i = 0; i < service->settings->server_count; i++)
		put_server(service, i, now_ticks, &status->servers[i]);
	timepage_publish_status(service->page, status);
}
