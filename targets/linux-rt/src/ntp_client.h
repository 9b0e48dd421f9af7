/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An NTP client that stamps in user space: it asks a server at intervals, checks each answer, and lets the servo and the kernel's
 * loop act on it. Times come through port.h, datagrams and signals through port_wait.h, a steered clock through
 * port_frequency.h.
 */
#ifndef BW_NTP_CLIENT_H
#define BW_NTP_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/address.h"
#include "ntp_log.h"
#include "ntp_servo.h"
#include "port/port_frequency.h"
#include "port/port_wait.h"

enum { NTP_CONSTANT_AUTO = -1, NTP_CONSTANT_MAX = 10 };

/* Ends of the client that are not errors of the system. */
enum ntp_end {
	NTP_END_REFUSED = 1, /* the server denies service (kiss-of-death) */
	NTP_END_PANIC = 2,   /* the clocks are further apart than panic_ms */
};

struct ntp_client_settings {
	struct address server;
	int64_t interval_ms, timeout_ms; /* from poll to poll; for an answer */
	int64_t init_interval_ms, init_polls;
	int64_t constant;                /* of the kernel's loop; NTP_CONSTANT_AUTO: by the interval */
	int64_t step_ns, stepout_ms, panic_ms, filter; /* as of ntp_servo_settings */
	int64_t polls_max;               /* 0: without end */
	bool measure_only;               /* touch no clock */
};

struct ntp_client {
	struct ntp_client_settings settings;
	struct waiter *waiter;
	struct frequency_clock *clock;
	struct ntp_servo servo;
	struct ntp_log log;
	bool held, ended;
	int slowed; /* complaints of the rate that good answers have not made up for: each doubles the interval */
	int missed; /* polls without a usable answer, since the last with one */
	char end_detail[32]; /* of NTP_END_…: the kiss code, or the offset with its unit */
};

/**
 * Prepare a client.
 *
 * @param waiter  open, with a socket; stays the caller's, as do clock and json
 */
void ntp_client_init(struct ntp_client *client, const struct ntp_client_settings *settings, struct waiter *waiter,
		     struct frequency_clock *clock, struct json *json);

/** Poll until the end. @return 0, NTP_END_…, or -errno */
int ntp_client_run(struct ntp_client *client);

#endif
