/* SPDX-License-Identifier: Apache-2.0 */
#include "measurement.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "answer/answer.h"
#include "answer/summary.h"
#include "base/time_units.h"
#include "service.h"

#define LOOK_NS (100 * NS_PER_MS) /* how soon a stop is seen */
#define LATE_LOOK_NS NS_PER_S     /* of who times a reply: a look before it would stand in for a wake-up that is late */

const struct common measure_defaults = {
	.local = "0", .socket_path = RTDIP_SOCKET, .packets = "high", .size_bytes = 64, .priority = 0, .cpu = -1,
};

void measure_add_options(struct option *options, struct common *common)
{
	const struct option rows[COMMON_OPTIONS] = {
		{ .name = "local", .kind = OPTION_TEXT, .target = &common->local, .argument = "PORT|ADDRESS:PORT",
		  .help = "own port of RTDiP (default 0: any), or of UDP" },
		{ .name = "peer", .kind = OPTION_TEXT, .target = &common->peer, .argument = "MAC/PORT|ADDRESS:PORT",
		  .help = "who is sent to, by RTDiP or UDP as --local says" },
		{ .name = "socket", .kind = OPTION_TEXT, .target = &common->socket_path, .argument = "PATH",
		  .help = "of the service of RTDiP (default " RTDIP_SOCKET ")" },
		{ .name = "packets", .kind = OPTION_TEXT, .target = &common->packets, .argument = "high|medium|low",
		  .help = "priority of frames of RTDiP (default high)" },
		{ .name = "size-bytes", .kind = OPTION_INT, .target = &common->size_bytes, .min = MESSAGE_MIN_BYTES,
		  .max = MESSAGE_MAX_BYTES, .argument = "N",
		  .help = "data of a message, 4..65507 bytes; of RTDiP what a frame has room for, but for --fragments (default 64)" },
		{ .name = "priority", .kind = OPTION_INT, .target = &common->priority, .min = 0, .max = 99, .argument = "N",
		  .help = "SCHED_FIFO priority, 0..99 (default 0: ordinary scheduling)" },
		{ .name = "cpu", .kind = OPTION_INT, .target = &common->cpu, .min = 0, .max = 1023, .argument = "N",
		  .help = "CPU that it is pinned to, 0..1023 (default: any)" },
		{ .name = "busy", .kind = OPTION_FLAG, .target = &common->busy, .help = "poll instead of sleeping" },
		{ .name = "busy-poll-us", .kind = OPTION_INT, .target = &common->busy_poll_us, .min = 0, .max = 10000,
		  .argument = "N", .help = "UDP: poll the card so long before sleeping, 0..10000 us (default 0)" },
		{ .name = "bypass-qdisc", .kind = OPTION_FLAG, .target = &common->bypass,
		  .help = "send frames of RTDiP past the queueing discipline" },
		{ .name = "fragments", .kind = OPTION_FLAG, .target = &common->fragments,
		  .help = "large messages: over RTDiP in fragments, as at the other end, and with room for 4 MB of them" },
	};

	memcpy(options, rows, sizeof(rows));
}

static int priority_of(const char *name, enum rtdip_priority *priority)
{
	for (int i = 0; i < RTDIP_PRIORITIES; i++) {
		if (!strcmp(name, rtdip_priority_name((enum rtdip_priority)i))) {
			*priority = (enum rtdip_priority)i;
			return 0;
		}
	}
	return -EINVAL;
}

static void say_ready(const struct run *run);

/* Why there is no end. Returns an exit code. */
static int say_no_end(const struct run *run, int err)
{
	const struct common *common = &run->common;

	if (!run->end.no_service)
		fprintf(stderr, "%s: --local %s: %s\n", run->tool, common->local, strerror(-err));
	else
		fprintf(stderr, "%s: --socket %s: no service of RTDiP can be asked: %s\n", run->tool, common->socket_path, strerror(-err));
	return err == -EINVAL || err == -ENAMETOOLONG ? EXIT_BAD_INPUT : EXIT_CAPABILITY;
}

/* Who sends messages of a size needs a way that takes them. */
static bool fits(const struct run *run)
{
	const struct common *common = &run->common;

	return !run->end.handle || common->fragments || common->size_bytes <= (int64_t)rtdip_data_max_bytes(run->end.handle);
}

int measure_run(struct run *run, bool has_peer, void (*body)(void *))
{
	const struct common *common = &run->common;
	struct port_thread *thread;
	int err;

	if (priority_of(common->packets, &run->packets)) {
		fprintf(stderr, "%s: --packets: \"%s\"; allowed: high, medium, low\n", run->tool, common->packets);
		return EXIT_BAD_INPUT;
	}
	port_stop_install();
	err = end_open(&run->end, common->local, common->socket_path, common->bypass ? RTDIP_BYPASS_QDISC : 0,
		       common->fragments);
	if (err)
		return say_no_end(run, err);
	run->end.busy = common->busy;
	if (common->busy_poll_us && end_set_busy_poll(&run->end, (int)common->busy_poll_us)) {
		fprintf(stderr, "%s: --busy-poll-us: of UDP alone, where the kernel has it, and with CAP_NET_ADMIN\n", run->tool);
		end_close(&run->end);
		return EXIT_CAPABILITY;
	}
	if (has_peer && (!common->peer || end_parse_peer(&run->end, common->peer, &run->peer))) {
		fprintf(stderr, "%s: --peer: \"%s\"; needed: %s\n", run->tool, common->peer ? common->peer : "",
			run->end.handle ? "MAC/PORT, as 02:00:00:00:00:01/7000" : "ADDRESS:PORT");
		end_close(&run->end);
		return EXIT_BAD_INPUT;
	}
	if (has_peer && !fits(run)) {
		fprintf(stderr, "%s: --size-bytes: %" PRId64 "; a frame takes %" PRIu32 " at most, --fragments more\n", run->tool,
			common->size_bytes, rtdip_data_max_bytes(run->end.handle));
		end_close(&run->end);
		return EXIT_BAD_INPUT;
	}
	say_ready(run);
	err = port_thread_start(run->thread, (int)common->priority, common->cpu < 0 ? PORT_CPU_ANY : (int)common->cpu, body, run,
				&thread);
	if (err) {
		fprintf(stderr, "%s: the thread cannot be started: %s\n", run->tool, strerror(-err));
		end_close(&run->end);
		return EXIT_CAPABILITY;
	}
	run->scheduling = *port_thread_scheduling(thread);
	port_thread_join(thread);
	if (run->err)
		fprintf(stderr, "%s: %s\n", run->tool, strerror(-run->err));
	return run->err ? EXIT_FAULT : EXIT_DONE;
}

void measure_open_line(struct json *json, const struct run *run, const char *type)
{
	json_init(json, stdout);
	answer_begin(json, type, run->tool);
	json_string(json, "over", run->end.handle ? "rtdip" : "udp");
	if (run->end.handle)
		json_int(json, "port", run->end.port);
	if (run->common.fragments)
		json_bool(json, "fragments", true);
	if (run->common.busy_poll_us)
		json_int(json, "busy_poll_us", run->common.busy_poll_us);
}

void measure_close_line(struct json *json)
{
	answer_end(json);
}

static void say_ready(const struct run *run)
{
	struct json json;

	measure_open_line(&json, run, "ready");
	measure_close_line(&json);
}

void measure_close_result(struct json *json, struct run *run)
{
	if (run->end.handle) {
		struct rtdip_counts counts;

		rtdip_counts(run->end.handle, &counts);
		json_uint(json, "frames_received", counts.received);
		json_uint(json, "frames_sent", counts.sent);
		json_uint(json, "frames_unheard", counts.unheard);
		json_uint(json, "frames_missing", counts.missing);
	}
	summary_scheduling(json, &run->scheduling);
	measure_close_line(json);
	end_close(&run->end);
}

int64_t measure_next_message(struct run *run, struct peer *from, enum rtdip_priority *priority, void *data, size_t room_bytes)
{
	int64_t length = end_receive(&run->end, from, priority, data, room_bytes, LOOK_NS);

	if (length == -EPIPE)
		run->err = -EPIPE;
	return length < 0 ? -EAGAIN : length;
}

int64_t measure_await_reply(struct run *run, int64_t deadline_monotonic_ns, struct peer *from, enum rtdip_priority *priority,
			    void *data, size_t room_bytes)
{
	int64_t left_ns = deadline_monotonic_ns - port_clock_now_ns(PORT_CLOCK_MONOTONIC), length;
	bool last = left_ns <= LATE_LOOK_NS;

	length = end_receive(&run->end, from, priority, data, room_bytes, last ? left_ns > 0 ? left_ns : 0 : LATE_LOOK_NS);
	return length == -ETIMEDOUT && !last ? -EINTR : length;
}
