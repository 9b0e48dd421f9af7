/* SPDX-License-Identifier: Apache-2.0 */
/* What bw-ntp-user says, as NDJSON: ready, poll, rejected, state. Functions return 0, or -EIO when the stream has failed. */
#ifndef BW_NTP_LOG_H
#define BW_NTP_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/address.h"
#include "base/json.h"
#include "ntp/ntp_packet.h"

#define NTP_TOOL "bw-ntp-user"

struct ntp_log {
	struct json *json;
	int tai_utc_s;
};

/** @param state  of the client: init, locked or hold; likewise below */
int ntp_log_ready(struct ntp_log *log, const char *state, const struct address *server, int64_t interval_ms, int64_t constant,
		  bool discipline);
int ntp_log_state(struct ntp_log *log, const char *state);
/** @param detail  NULL: none */
int ntp_log_rejected(struct ntp_log *log, const char *state, const char *reason, const char *detail);
/**
 * @param received_realtime_ns  when the answer came
 * @param frequency_ppb         the correction in force; ptp4l and chronyd log what it corrects, with the other sign
 * @param step_ns               by which the clock is stepped because of this answer; 0: it is not
 */
int ntp_log_poll(struct ntp_log *log, const char *state, const struct ntp_sample *sample, int64_t received_realtime_ns,
		 double frequency_ppb, int64_t step_ns);

#endif
