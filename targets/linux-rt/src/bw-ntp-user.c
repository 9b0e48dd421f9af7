/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bw-ntp-user - an NTP client that stamps in user space: the baseline that papers call standard NTP
 *
 * It reads the clock just before it sends and just after it has received, so that all that the kernel and the scheduler do
 * to a packet is an error of the measurement: that is its point. What it measures it gives to the kernel's own phase-locked
 * loop (ntp_adjtime), by the clock filter and the state machine of RFC 5905. One NDJSON object a poll goes to stdout.
 *
 * SIGUSR1: stop listening to the server, keep the frequency (holdover); SIGUSR2: listen again; SIGTERM: end.
 */
#define _GNU_SOURCE /* ppoll */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#include "address.h"
#include "frequency.h"
#include "json.h"
#include "ntp_packet.h"
#include "ntp_servo.h"
#include "options.h"

#define TOOL "bw-ntp-user"
#define NS_PER_S INT64_C(1000000000)
#define NS_PER_MS INT64_C(1000000)
#define TIME_STEP_NS INT64_C(128000000)
#define TIME_STEPOUT_MS INT64_C(300000)
#define TIME_PANIC_MS INT64_C(1000000)
#define LONG_MS INT64_C(1000000000)

enum {
	NTP_PORT = 123, TAI_UTC_DEFAULT_S = 37, REJECTED_MAX = 16, REACH_POLLS = 8, CONSTANT_AUTO = -1, CONSTANT_MAX = 10,
	INTERVAL_DEFAULT_MS = 1000, INIT_INTERVAL_DEFAULT_MS = 1000, INIT_POLLS_DEFAULT = 16, TIMEOUT_DEFAULT_MS = 1000
};

/* Ends of the client that are not errors of the system. */
enum { END_REFUSED = 1, END_PANIC = 2 };

struct client {
	const char *server_text;
	int64_t port, interval_ms, timeout_ms, init_interval_ms, init_polls, constant, step_ns, stepout_ms, panic_ms, filter, polls_max;
	bool measure_only;

	struct address server;
	int sock, signals;
	int tai_utc_s;
	struct frequency_clock clock;
	struct ntp_servo servo;
	struct json json;
	bool held, ended;
	int missed; /* polls without a usable answer, since the last with one */
};

static int64_t clock_ns(clockid_t id)
{
	struct timespec now;

	clock_gettime(id, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* ---- the clock ------------------------------------------------------------------------------------------------- */

/* Let the kernel's loop take out an offset; 0 begins with a loop that has nothing left to do. */
static int clock_slew(const struct client *client, int64_t correction_ns)
{
	struct timex tx = { .modes = MOD_OFFSET | MOD_STATUS | MOD_TIMECONST | MOD_NANO, .status = STA_PLL };

	tx.offset = correction_ns;
	tx.constant = client->constant;
	return ntp_adjtime(&tx) < 0 ? -errno : 0;
}

static int clock_add_frequency(const struct client *client, double ppb)
{
	double now_ppb;
	int err = frequency_get(&client->clock, &now_ppb);

	if (err)
		return err;
	ppb += now_ppb;
	if (ppb > client->clock.max_ppb)
		ppb = client->clock.max_ppb;
	if (ppb < -client->clock.max_ppb)
		ppb = -client->clock.max_ppb;
	return frequency_set(&client->clock, ppb);
}

/* Do what the servo says. Returns 0 or -errno. */
static int clock_correct(const struct client *client, const struct ntp_servo_answer *answer)
{
	int err;

	switch (answer->action) {
	case NTP_STEP:
		err = frequency_clock_step(&client->clock, answer->correction_ns);
		return err ? err : clock_slew(client, 0);
	case NTP_SET:
		err = clock_add_frequency(client, answer->frequency_ppb);
		return err ? err : clock_slew(client, answer->correction_ns);
	case NTP_SLEW:
		return clock_slew(client, answer->correction_ns);
	case NTP_WAIT:
	case NTP_SPIKE:
	case NTP_PANIC:
		break;
	}
	return 0;
}

/* ---- the log --------------------------------------------------------------------------------------------------- */

static const char *state_name(const struct client *client)
{
	if (client->held || client->missed >= REACH_POLLS)
		return "hold";
	return client->servo.state == NTP_INIT ? "init" : "locked";
}

static void line_begin(struct client *client, const char *type)
{
	json_object_open(&client->json, NULL);
	json_string(&client->json, "type", type);
	json_int(&client->json, "time_tai_ns", clock_ns(CLOCK_REALTIME) + client->tai_utc_s * NS_PER_S);
	json_int(&client->json, "monotonic_ns", clock_ns(CLOCK_MONOTONIC));
}

static int line_end(struct client *client)
{
	json_string(&client->json, "state", state_name(client));
	json_object_close(&client->json);
	return json_line_end(&client->json);
}

static int log_ready(struct client *client)
{
	char text[ADDRESS_TEXT_BYTES];

	line_begin(client, "ready");
	json_string(&client->json, "tool", TOOL);
	json_string(&client->json, "server", address_format(&client->server, text));
	json_int(&client->json, "interval_ms", client->interval_ms);
	json_int(&client->json, "time_constant", client->constant);
	json_bool(&client->json, "discipline", !client->measure_only);
	return line_end(client);
}

static int log_rejected(struct client *client, const char *reason, const char *detail)
{
	line_begin(client, "rejected");
	json_string(&client->json, "reason", reason);
	if (detail)
		json_string(&client->json, "detail", detail);
	return line_end(client);
}

static int log_poll(struct client *client, const struct ntp_sample *sample, int64_t received_ns, int64_t step_ns)
{
	double ppb = 0.0;
	int err = frequency_get(&client->clock, &ppb);

	if (err)
		return err;
	json_object_open(&client->json, NULL);
	json_string(&client->json, "type", "poll");
	json_int(&client->json, "time_tai_ns", received_ns + client->tai_utc_s * NS_PER_S);
	json_int(&client->json, "monotonic_ns", clock_ns(CLOCK_MONOTONIC));
	json_int(&client->json, "offset_ns", sample->offset_ns);
	json_int(&client->json, "delay_ns", sample->delay_ns);
	/* The correction in force; ptp4l and chronyd log what it corrects, with the other sign. */
	json_double(&client->json, "freq_ppb", ppb);
	if (step_ns)
		json_int(&client->json, "step_ns", step_ns);
	return line_end(client);
}

/* ---- one poll -------------------------------------------------------------------------------------------------- */

/* Take a good answer: the servo, the clock, the log. Returns 0, END_PANIC or -errno. */
static int sample_use(struct client *client, const struct ntp_sample *sample, int64_t received_ns)
{
	struct ntp_servo_answer answer = { .action = NTP_WAIT };
	int err = 0;

	client->missed = 0;
	if (!client->measure_only)
		answer = ntp_servo_take(&client->servo, sample, clock_ns(CLOCK_MONOTONIC));
	if (answer.action == NTP_SPIKE || answer.action == NTP_PANIC) {
		char offset[32];

		snprintf(offset, sizeof(offset), "%lld ns", (long long)sample->offset_ns);
		err = log_rejected(client, answer.action == NTP_PANIC ? "panic" : "spike", offset);
		if (err || answer.action == NTP_SPIKE)
			return err;
		fprintf(stderr, TOOL ": the clocks differ by %s: more than --panic-ms %lld; the server is wrong, or this clock\n",
			offset, (long long)client->panic_ms);
		return END_PANIC;
	}
	/* Logged before the correction: the step is part of the line. */
	err = log_poll(client, sample, received_ns, answer.action == NTP_STEP ? answer.correction_ns : 0);
	return err ? err : clock_correct(client, &answer);
}

/* What came with one datagram. */
struct incoming {
	uint8_t packet[NTP_PACKET_BYTES * 4];
	ssize_t size_bytes;
	struct sockaddr_in source;
	int64_t received_ns; /* CLOCK_REALTIME */
};

static bool from_server(const struct client *client, const struct incoming *incoming)
{
	return ntohl(incoming->source.sin_addr.s_addr) == client->server.ipv4 &&
	       ntohs(incoming->source.sin_port) == client->server.port;
}

static const char *kiss_detail(const struct ntp_reply *reply, char text[16])
{
	snprintf(text, 16, "stratum %u", reply->stratum);
	return reply->stratum == 0 ? reply->kiss : text;
}

/* A server that denies must not be asked again (RFC 5905, section 7.4); one that complains of the rate is asked half as often. */
static int kiss_obey(struct client *client, const char *kiss)
{
	if (strcmp(kiss, "RATE") == 0) {
		if (client->interval_ms < LONG_MS / 2)
			client->interval_ms *= 2;
		return 0;
	}
	if (strcmp(kiss, "DENY") != 0 && strcmp(kiss, "RSTR") != 0)
		return 0;
	fprintf(stderr, TOOL ": %s: the server refuses service: kiss-of-death %s\n", client->server_text, kiss);
	return END_REFUSED;
}

/*
 * Look at one datagram. Returns 0 (*done: the poll is over), END_… or -errno. What does not answer this request does not end
 * the poll: anybody could send it.
 */
static int incoming_take(struct client *client, const struct incoming *incoming, uint64_t sent, bool *done)
{
	struct ntp_reply reply;
	struct ntp_sample sample;
	enum ntp_reject reject;
	char detail[16];
	int err;

	if (!from_server(client, incoming))
		return log_rejected(client, "source", NULL);
	if (ntp_reply_parse(incoming->packet, (size_t)incoming->size_bytes, &reply))
		return log_rejected(client, ntp_reject_name(NTP_SHORT), NULL);
	reject = ntp_reply_check(&reply, sent);
	*done = reject == NTP_GOOD || reject >= NTP_KISS_OF_DEATH;
	if (reject == NTP_GOOD)
		reject = ntp_sample_take(&reply, sent, ntp_from_realtime_ns(incoming->received_ns), &sample);
	if (reject == NTP_GOOD)
		return sample_use(client, &sample, incoming->received_ns);
	if (*done)
		client->missed++;
	err = log_rejected(client, ntp_reject_name(reject),
			   reject == NTP_KISS_OF_DEATH || reject == NTP_STRATUM ? kiss_detail(&reply, detail) : NULL);
	return !err && reject == NTP_KISS_OF_DEATH ? kiss_obey(client, reply.kiss) : err;
}

static void signal_take(struct client *client)
{
	struct signalfd_siginfo info;

	if (read(client->signals, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return;
	if (info.ssi_signo == SIGUSR1 || info.ssi_signo == SIGUSR2) {
		client->held = info.ssi_signo == SIGUSR1;
		line_begin(client, "state");
		line_end(client);
	} else {
		client->ended = true;
	}
}

/*
 * Wait for a datagram or a signal until a time of CLOCK_MONOTONIC. With incoming = NULL datagrams are not looked at.
 *
 * Returns 1 with a datagram, 0 with none as yet, -ETIMEDOUT, -EINTR after a signal, or -errno.
 */
static int wait_until(struct client *client, int64_t deadline_ns, struct incoming *incoming)
{
	struct pollfd fds[2] = { { .fd = client->signals, .events = POLLIN }, { .fd = client->sock, .events = POLLIN } };
	int64_t left_ns = deadline_ns - clock_ns(CLOCK_MONOTONIC);
	struct timespec left = { 0 };
	socklen_t length = sizeof(incoming->source);
	int ready;

	if (left_ns > 0)
		left = (struct timespec){ left_ns / NS_PER_S, left_ns % NS_PER_S };
	ready = ppoll(fds, incoming ? 2 : 1, &left, NULL);
	if (ready < 0)
		return errno == EINTR ? 0 : -errno;
	if (fds[0].revents) {
		signal_take(client);
		return -EINTR;
	}
	if (!incoming || !fds[1].revents)
		return left_ns <= 0 ? -ETIMEDOUT : 0;
	incoming->size_bytes = recvfrom(client->sock, incoming->packet, sizeof(incoming->packet), MSG_DONTWAIT,
					(struct sockaddr *)&incoming->source, &length);
	incoming->received_ns = clock_ns(CLOCK_REALTIME);
	/* What is no datagram (an error of an earlier one) does not end the poll. */
	return incoming->size_bytes < 0 ? 0 : 1;
}

static int request_send(const struct client *client, uint64_t *sent)
{
	struct sockaddr_in server = { .sin_family = AF_INET, .sin_port = htons(client->server.port) };
	uint8_t packet[NTP_PACKET_BYTES];

	server.sin_addr.s_addr = htonl(client->server.ipv4);
	*sent = ntp_from_realtime_ns(clock_ns(CLOCK_REALTIME));
	ntp_request_pack(packet, *sent);
	if (sendto(client->sock, packet, sizeof(packet), 0, (struct sockaddr *)&server, sizeof(server)) < 0)
		return -errno;
	return 0;
}

/* Ask once. Returns 0, END_… or -errno. */
static int poll_once(struct client *client)
{
	int64_t deadline_ns = clock_ns(CLOCK_MONOTONIC) + client->timeout_ms * NS_PER_MS;
	struct incoming incoming;
	bool done = false;
	uint64_t sent;
	int err = request_send(client, &sent);

	if (err) {
		/* The network may come back. */
		client->missed++;
		return log_rejected(client, "not-sent", strerror(-err));
	}
	for (int taken = 0; !done && !client->ended && !client->held;) {
		int found = wait_until(client, deadline_ns, &incoming);

		if (found == -ETIMEDOUT || taken == REJECTED_MAX) {
			client->missed++;
			return log_rejected(client, "no-answer", NULL);
		}
		if (found < 0 && found != -EINTR)
			return found;
		if (found <= 0)
			continue;
		taken++;
		err = incoming_take(client, &incoming, sent, &done);
		if (err)
			return err;
	}
	return 0;
}

/* ---- the run --------------------------------------------------------------------------------------------------- */

static int64_t interval_ns(const struct client *client)
{
	bool init = !client->measure_only && client->servo.state == NTP_INIT;

	return (init && client->init_interval_ms < client->interval_ms ? client->init_interval_ms : client->interval_ms) *
	       NS_PER_MS;
}

/* Wait for the next poll; one that is held waits until it is told to listen again. Returns 0 or -errno. */
static int next_poll_wait(struct client *client, int64_t *next_ns)
{
	while (!client->ended) {
		bool was_held = client->held;
		int err = wait_until(client, was_held ? clock_ns(CLOCK_MONOTONIC) + LONG_MS * NS_PER_MS : *next_ns, NULL);

		if (err < 0 && err != -EINTR && err != -ETIMEDOUT)
			return err;
		if (was_held && !client->held)
			*next_ns = clock_ns(CLOCK_MONOTONIC);
		else if (err == -ETIMEDOUT && !client->held)
			break;
	}
	return 0;
}

static int polls_run(struct client *client)
{
	int64_t next_ns = clock_ns(CLOCK_MONOTONIC);

	for (int64_t polls = 0; !client->ended && (!client->polls_max || polls < client->polls_max); polls++) {
		int err = poll_once(client);

		if (!err) {
			next_ns += interval_ns(client);
			err = next_poll_wait(client, &next_ns);
		}
		if (err)
			return err;
	}
	return 0;
}

static int client_open(struct client *client)
{
	struct timex tx = { .modes = 0 };
	struct sockaddr_in any = { .sin_family = AF_INET };
	sigset_t mask;

	client->sock = client->signals = client->clock.fd = -1;
	sigemptyset(&mask);
	sigaddset(&mask, SIGTERM);
	sigaddset(&mask, SIGINT);
	sigaddset(&mask, SIGHUP);
	sigaddset(&mask, SIGUSR1);
	sigaddset(&mask, SIGUSR2);
	sigprocmask(SIG_BLOCK, &mask, NULL);
	client->signals = signalfd(-1, &mask, SFD_CLOEXEC);
	/* Not connected: an answer from somewhere else is to be seen, and named. */
	client->sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (client->signals < 0 || client->sock < 0 || bind(client->sock, (struct sockaddr *)&any, sizeof(any)))
		return -errno;
	if (adjtimex(&tx) < 0)
		return -errno;
	client->tai_utc_s = tx.tai ? tx.tai : TAI_UTC_DEFAULT_S;
	return frequency_open(&client->clock, NULL);
}

static void client_close(struct client *client)
{
	if (client->sock >= 0)
		close(client->sock);
	if (client->signals >= 0)
		close(client->signals);
	frequency_close(&client->clock);
}

static int client_run(struct client *client)
{
	struct ntp_servo_settings settings = {
		.step_ns = client->step_ns,
		.stepout_ns = client->stepout_ms * NS_PER_MS,
		.panic_ns = client->panic_ms * NS_PER_MS,
		.init_polls = (int)client->init_polls,
		.filter = (int)client->filter,
	};
	int err = client_open(client);

	ntp_servo_init(&client->servo, &settings);
	if (client->constant == CONSTANT_AUTO)
		client->constant = ntp_time_constant(client->interval_ms);
	if (!err && !client->measure_only)
		err = clock_slew(client, 0);
	if (!err)
		err = log_ready(client);
	if (!err)
		err = polls_run(client);
	/* What is left of the last slew goes no further: the frequency alone stays. */
	if (!err && !client->measure_only)
		err = clock_slew(client, 0);
	client_close(client);
	return err;
}

static int client_parse(struct client *client, int argc, char **argv)
{
	const struct option options[] = {
		{ "server", OPTION_TEXT, &client->server_text, 0, 0, "ADDRESS", "IPv4 address of the server", false },
		{ "port", OPTION_INT, &client->port, 1, 65535, "N", "its UDP port (123)", false },
		{ "interval-ms", OPTION_INT, &client->interval_ms, 10, 3600000, "N", "from poll to poll (1000)", false },
		{ "timeout-ms", OPTION_INT, &client->timeout_ms, 1, 60000, "N", "for an answer (1000)", false },
		{ "init-polls", OPTION_INT, &client->init_polls, 2, NTP_INIT_POLLS_MAX, "N",
		  "polls of the first measurement of the frequency, the shorter half of which counts (16)", false },
		{ "init-interval-ms", OPTION_INT, &client->init_interval_ms, 10, 3600000, "N",
		  "from poll to poll meanwhile, where --interval-ms is longer (1000)", false },
		{ "filter", OPTION_INT, &client->filter, 1, NTP_FILTER_MAX, "N",
		  "of so many samples the one of the shortest round trip is used (8)", false },
		{ "time-constant", OPTION_INT, &client->constant, 0, CONSTANT_MAX, "N",
		  "of the kernel's loop (log2 of the interval in s, less 4)", false },
		{ "step-ns", OPTION_INT, &client->step_ns, 1000, 500000000, "N", "larger offsets are stepped (128000000)", false },
		{ "stepout-ms", OPTION_INT, &client->stepout_ms, 0, LONG_MS, "N",
		  "but after the start only when they last; 0: never (300000)", false },
		{ "panic-ms", OPTION_INT, &client->panic_ms, 0, LONG_MS, "N", "larger offsets end the client; 0: none (1000000)",
		  false },
		{ "polls", OPTION_INT, &client->polls_max, 0, LONG_MS, "N", "end after N polls; 0: at SIGTERM (0)", false },
		{ "no-discipline", OPTION_FLAG, &client->measure_only, 0, 0, NULL, "only measure; touch no clock", false },
		{ 0 },
	};
	const struct command command = {
		TOOL, "--server ADDRESS [options]",
		"An NTPv4 client that stamps in user space and disciplines CLOCK_REALTIME through the kernel's loop (RFC 5905).\n"
		"offset_ns positive: this clock is ahead; freq_ppb positive: it is made faster. SIGUSR1: keep the frequency and stop\n"
		"listening; SIGUSR2: listen again.\n"
		"Exit codes: 0 done, 2 bad input, 3 not permitted, 4 the server refuses, or is further off than --panic-ms.\n",
		options, 0, 0,
	};
	int parsed = options_parse(&command, argc, argv, NULL);

	if (parsed < 0)
		return options_exit_code(parsed);
	if (!client->server_text || address_parse_ipv4(client->server_text, &client->server.ipv4)) {
		fprintf(stderr, TOOL ": --server: must be an IPv4 address, found \"%s\"\n",
			client->server_text ? client->server_text : "");
		return EXIT_BAD_INPUT;
	}
	client->server.port = (uint16_t)client->port;
	return -1;
}

int main(int argc, char **argv)
{
	struct client client = {
		.port = NTP_PORT,
		.interval_ms = INTERVAL_DEFAULT_MS,
		.timeout_ms = TIMEOUT_DEFAULT_MS,
		.init_interval_ms = INIT_INTERVAL_DEFAULT_MS,
		.init_polls = INIT_POLLS_DEFAULT,
		.constant = CONSTANT_AUTO,
		.step_ns = TIME_STEP_NS,
		.stepout_ms = TIME_STEPOUT_MS,
		.panic_ms = TIME_PANIC_MS,
		.filter = NTP_FILTER_MAX,
	};
	int code = client_parse(&client, argc, argv);
	int err;

	if (code >= 0)
		return code;
	json_init(&client.json, stdout);
	err = client_run(&client);
	if (err > 0)
		return EXIT_INVALID;
	if (err) {
		fprintf(stderr, TOOL ": %s\n", strerror(-err));
		return EXIT_CAPABILITY;
	}
	return EXIT_DONE;
}
