/* SPDX-License-Identifier: Apache-2.0 */
/** Patterns and plans: what is read, and the exact words in which the rest is refused. Argument: patterns/daq12.toml. */
#include "plan/plan.h"

#include <errno.h>
#include <stdlib.h>

#include "check.h"

#define TEXT_BYTES 65536

#define PATTERN "[pattern]\nschema = \"benchwright.pattern/1\"\nname = \"two\"\nsource = \"a test\"\n"
#define STREAM_EVERY(period, id, transport, size)                                                     \
	"[[stream]]\nid = " id "\ntransport = \"" transport "\"\nsize_bytes = " size "\nperiod_us = " period \
	"\nbudget_us = 500\n"
#define STREAM(id, transport, size) STREAM_EVERY("1000", id, transport, size)
#define STREAMS STREAM("10", "tcp", "100") STREAM("22", "udp", "65507")
#define RUN                                                                                                             \
	"[run]\nschema = \"benchwright.plan/1\"\nnonce = \"0123456789abcdef\"\nphase = \"aligned-12\"\nscale = 1\n"      \
	"base_port = 20000\nwarmup_ms = 6000\nduration_ms = 60000\ngrace_ms = 2000\nspin_us = 0\ncorrection = \"two-way\"\n" \
	"tai_utc_s = 37\ncapture_stamps = true\n"
#define CONSUMER "[consumer]\naddress = \"10.77.0.100\"\n"
#define CLOCK(name) "[[clock]]\nname = \"" name "\"\naddress = \"10.78.0.254\"\nport = 19999\n"
#define PRODUCER(number, clock)                                                                                       \
	"[[producer]]\nnumber = " number "\naddress = \"10.77.0." number "\"\nclock = \"" clock "\"\n"                \
	"start_tai_ns = 1790000000000000000\nrate_ppb = -100_000\n"
#define PRODUCERS PRODUCER("1", "host") PRODUCER("2", "guest")
#define CLOCKS CLOCK("host") CLOCK("guest")
#define PLAN RUN CONSUMER CLOCKS PRODUCERS PATTERN STREAMS
#define FAST_PLAN RUN CONSUMER CLOCKS PRODUCERS PATTERN STREAM_EVERY("1", "10", "tcp", "10") STREAM("20", "tcp", "10")

/* Replace the first `from` in a plan by `to`, parse it, and compare the error; "" is none. */
static void check_changed(const char *original, const char *from, const char *to, const char *expected)
{
	static char text[TEXT_BYTES];
	const char *place = strstr(original, from);
	struct schema_error error = { "" };
	struct plan *plan = NULL;
	int err;

	CHECK_THAT(place, "the plan has no \"%s\"", from);
	if (!place)
		return;
	snprintf(text, sizeof(text), "%.*s%s%s", (int)(place - original), original, to, place + strlen(from));
	err = plan_parse("p", text, strlen(text), &plan, &error);
	CHECK_TEXT(error.text, expected);
	CHECK_INT(err, *expected ? -EINVAL : 0);
	plan_destroy(plan);
}

static void check_plan(const char *from, const char *to, const char *expected)
{
	check_changed(PLAN, from, to, expected);
}

static void check_pattern(const char *text, const char *expected)
{
	struct schema_error error = { "" };
	struct pattern *pattern = NULL;
	int err = pattern_parse("p", text, strlen(text), &pattern, &error);

	CHECK_TEXT(error.text, expected);
	CHECK_INT(err, *expected ? -EINVAL : 0);
	pattern_destroy(pattern);
}

static void check_contents(void)
{
	struct schema_error error;
	struct plan *plan = NULL;

	CHECK_INT(plan_parse("p", PLAN, strlen(PLAN), &plan, &error), 0);
	if (!plan)
		return;
	CHECK(plan->nonce == UINT64_C(0x0123456789abcdef));
	CHECK_INT(plan->phase, PHASE_ALIGNED_12);
	CHECK_INT(plan->base_port, 20000);
	CHECK_INT(plan->warmup_ns, INT64_C(6000000000));
	CHECK_INT(plan->duration_ns, INT64_C(60000000000));
	CHECK_INT(plan->grace_ns, INT64_C(2000000000));
	CHECK_INT(plan->correction, CORRECTION_TWO_WAY);
	CHECK(plan->capture_stamps);
	CHECK_INT(plan->consumer.ipv4, 0x0a4d0064);
	CHECK_INT(plan->clock_count, 2);
	CHECK_INT(plan->clocks[1].address.port, 19999);
	CHECK_INT(plan->producer_count, 2);
	CHECK_TEXT(plan->clocks[plan_find_producer(plan, 2)->clock].name, "guest");
	CHECK_INT(plan_find_producer(plan, 2)->rate_ppb, -100000);
	CHECK(!plan_find_producer(plan, 3));
	CHECK_INT(plan->pattern->stream_count, 2);
	CHECK_INT(plan->pattern->streams[1].id, 22);
	CHECK_INT(plan->pattern->streams[1].transport, TRANSPORT_UDP);
	CHECK_INT(plan->pattern->streams[1].period_ns, 1000000);
	CHECK_INT(plan->pattern->streams[1].message_type, 2);
	plan_destroy(plan);
}

static void check_refused_patterns(void)
{
	check_pattern(PATTERN STREAMS, "");
	check_pattern(PATTERN STREAM("31", "tcp", "5"), "p:8: [[stream]] id 31: size_bytes: 5 is out of range; allowed 10..16777216");
	check_pattern(PATTERN STREAM("31", "tcp", "16_777_217"),
		      "p:8: [[stream]] id 31: size_bytes: 16777217 is out of range; allowed 10..16777216");
	check_pattern(PATTERN STREAM("31", "udp", "65508"),
		      "p:8: [[stream]] id 31: size_bytes: 65508 is out of range for udp; allowed 10..65507");
	check_pattern(PATTERN STREAM("31", "tcp", "9223372036854775808"), "p:8: integer does not fit 64 bits");
	check_pattern(PATTERN STREAM("31", "tcp", "\"5\""), "p:8: [[stream]] id 31: size_bytes: a string; allowed an integer");
	check_pattern(PATTERN STREAM("9", "tcp", "10"), "p:6: [[stream]] id 9: id: 9 is out of range; allowed 10..6559");
	check_pattern(PATTERN STREAM("6560", "tcp", "10"), "p:6: [[stream]] id 6560: id: 6560 is out of range; allowed 10..6559");
	check_pattern(PATTERN STREAM("31", "sctp", "10"),
		      "p:7: [[stream]] id 31: transport: \"sctp\" is unknown; allowed \"tcp\", \"udp\"");
	check_pattern(PATTERN STREAM("31", "tcp", "10") STREAM("31", "udp", "10"),
		      "p:12: [[stream]] id 31: id: duplicate; the first is in line 6");
	check_pattern(PATTERN STREAM("31", "tcp", "10") "low_latency = 1\n",
		      "p:11: [[stream]] id 31: low_latency: an integer; allowed a boolean");
	check_pattern(PATTERN STREAM("31", "tcp", "10") "speed = 1\n", "p:11: [[stream]] id 31: unknown key \"speed\"");
	check_pattern(PATTERN STREAM("31", "tcp", "10") "id = 32\n",
		      "p:11: [[stream]] id 31: duplicate key \"id\"; the first is in line 6");
	check_pattern(PATTERN "[[stream]]\nid = 10\n", "p:5: [[stream]] id 10: transport: missing");
	check_pattern(PATTERN "[[stream]]\n", "p:5: [[stream]]: id: missing");
	check_pattern(PATTERN "[stream]\n", "p:5: table \"stream\" is written [[stream]]");
	check_pattern(PATTERN, "p: table [[stream]] is missing");
	check_pattern(PATTERN PATTERN STREAMS, "p:5: duplicate table [pattern]; the first is in line 1");
	check_pattern("x = 1\n", "p:1: key \"x\" stands before the first table");
	check_pattern(PATTERN RUN, "p:5: unknown table \"run\"");
	check_pattern("", "p: table [pattern] is missing");
}

static void check_refused_plans(void)
{
	check_plan("scale = 1", "scale = 1", "");
	check_plan("0123456789abcdef", "0123456789abcdeg", "p:3: [run]: nonce: \"0123456789abcdeg\"; allowed exactly 16 hexadecimal digits");
	check_plan("0123456789abcdef", "123", "p:3: [run]: nonce: \"123\"; allowed exactly 16 hexadecimal digits");
	check_plan("aligned-12", "aligned", "p:4: [run]: phase: \"aligned\" is unknown; allowed \"aligned-12\", \"aligned-48\", \"staggered\"");
	check_plan("plan/1", "plan/2", "p:2: [run]: schema: \"benchwright.plan/2\" is unknown; allowed \"benchwright.plan/1\"");
	check_plan("base_port = 20000", "base_port = 65514",
		   "p:6: [run]: base_port: 65514 plus the highest stream id 22 is no port; allowed 1024..65513");
	check_plan("base_port = 20000", "base_port = 65513", "");
	check_plan("scale = 1", "scale = 400", "p:5: [run]: scale: 400 is out of range for producers up to 2; allowed 1..327");
	check_plan("scale = 1", "scale = 0", "p:5: [run]: scale: 0 is out of range; allowed 1..655");
	check_plan("scale = 1", "scale = 2",
		   "p: table [[producer]] number 3 is missing: the pattern has streams of it at scale 2");
	check_plan("10.77.0.100", "10.77.0.256",
		   "p:15: [consumer]: address: \"10.77.0.256\"; allowed an address of IPv4 (\"10.77.0.1\") or IPv6 (\"fd77::1\")");
	check_plan("10.77.0.100", "fd77::100", "p:26: [[producer]] number 1: address: \"10.77.0.1\"; allowed an address of IPv6, as the consumer's");
	check_plan(CLOCK("guest"), CLOCK("host"), "p:21: [[clock]] name \"host\": name: duplicate; the first is in line 17");
	check_plan("clock = \"guest\"", "clock = \"gust\"", "p:33: [[producer]] number 2: clock: no [[clock]] has the name \"gust\"");
	check_plan(PRODUCERS, PRODUCER("1", "host"), "p: table [[producer]] number 2 is missing: the pattern has streams of it at scale 1");
	check_plan(PRODUCERS, PRODUCERS PRODUCER("1", "host"), "p:37: [[producer]] number 1: number: duplicate; the first is in line 24");
	check_plan(PRODUCERS, PRODUCERS PRODUCER("3", "host"), "p:37: [[producer]] number 3: number: the pattern has no stream of it at scale 1");
	check_plan("rate_ppb = -100_000", "rate_ppb = 1_000_001",
		   "p:29: [[producer]] number 1: rate_ppb: 1000001 is out of range; allowed -1000000..1000000");
	check_plan("start_tai_ns = 1790000000000000000", "start_tai_ns = 9_000_000_000_000_000_001",
		   "p:28: [[producer]] number 1: start_tai_ns: 9000000000000000001 is out of range; allowed 1..9000000000000000000");
	check_plan("duration_ms = 60000", "duration_ms = 0", "p:8: [run]: duration_ms: 0 is out of range; allowed 1..604800000");
	check_plan("tai_utc_s = 37\n", "", "p:1: [run]: tai_utc_s: missing");
	check_plan(CONSUMER, "", "p: table [consumer] is missing");
	/* Sequence numbers have 32 bits: a slot a microsecond fills them in 4294967.295 ms, of which 6000 ms are warm-up. */
	check_changed(FAST_PLAN, "duration_ms = 60000", "duration_ms = 4288967", "");
	check_changed(FAST_PLAN, "duration_ms = 60000", "duration_ms = 4288968",
		      "p:8: [run]: duration_ms: stream 10 would have 4294968000 slots; allowed 0..4294967295");
}

/* Table 1 of the paper: its worst case, the largest message of each producer at once, has 838 KB. */
static void check_file(const char *path)
{
	struct pattern *pattern = NULL;
	struct schema_error error = { "" };
	uint64_t largest[13] = { 0 }, sum = 0;

	CHECK_THAT(pattern_load(path, &pattern, &error) == 0, "%s", error.text);
	if (!pattern)
		return;
	CHECK_INT(pattern->stream_count, 48);
	CHECK_INT(pattern->producer_count, 12);
	CHECK_INT(pattern->producer_highest, 12);
	for (size_t i = 0; i < pattern->stream_count; i++) {
		const struct stream *stream = &pattern->streams[i];

		CHECK_INT(stream->id, (i / 4 + 1) * 10 + i % 4);
		CHECK_INT(stream->transport, stream->message_type == 2 ? TRANSPORT_UDP : TRANSPORT_TCP);
		CHECK_INT(stream->low_latency, stream->message_type == 3);
		CHECK_INT(stream->budget_ns, stream->low_latency ? 10000000 : stream->period_ns / 2);
		if (stream->size_bytes > largest[stream->producer])
			largest[stream->producer] = stream->size_bytes;
	}
	for (int producer = 1; producer <= 12; producer++)
		sum += largest[producer];
	CHECK_INT(sum, 838000);
	pattern_destroy(pattern);
	pattern = NULL;
	CHECK(pattern_load("/", &pattern, &error) < 0 && error.text[0]); /* a folder; systems name the error differently */
	CHECK_INT(pattern_load("no/such/file", &pattern, &error), -ENOENT);
	CHECK_TEXT(error.text, "no/such/file: cannot be read: No such file or directory");
}

int main(int argc, char **argv)
{
	check_contents();
	check_refused_patterns();
	check_refused_plans();
	CHECK_INT(argc, 2);
	if (argc == 2)
		check_file(argv[1]);
	return check_result();
}
