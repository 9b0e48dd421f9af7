/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Fuzz target: `bw-traffic recv`, behind its sockets: acceptor, receiving threads, accounts. The input is a script of what
 * the network does; a model, told of each byte as it is read and written without the program's code but for the check
 * value, keeps the same accounts. In the end both agree: each message and connection is counted once, as what it was, and
 * none without the right hello, nonce and check value as received.
 */
#include <errno.h>
#include <string.h>

#include "fuzz_port.h"
#include "plan/phase.h"
#include "traffic/receive/acceptor.h"

enum {
	BULK, FAST, DOOR, THREADS,           /* whose turn it is */
	STREAMS = 4, SLOTS_MAX = 16384, CONNECTIONS_MAX = 128, MESSAGE_MAX_BYTES = 1200, HELLO_TIMEOUT_MS = 1000,
	WINDOW = 4096,
};

#define NONCE UINT64_C(0x0123456789abcdef)
#define MS_NS INT64_C(1000000)

#define PLAN_HEAD(correction) \
	"[run]\nschema = \"benchwright.plan/1\"\nnonce = \"0123456789abcdef\"\nphase = \"aligned-12\"\nscale = 1\n" \
	"base_port = 20000\nwarmup_ms = 1000\nduration_ms = 10000\ngrace_ms = 1000\nspin_us = 0\n" \
	"correction = \"" correction "\"\ntai_utc_s = 37\ncapture_stamps = true\n"
#define PLAN_REST \
	"[consumer]\naddress = \"10.77.0.100\"\n[[clock]]\nname = \"host\"\naddress = \"10.78.0.254\"\nport = 19999\n" \
	"[[producer]]\nnumber = 1\naddress = \"10.77.0.1\"\nclock = \"host\"\nstart_tai_ns = 1790000000000000000\nrate_ppb = 0\n" \
	"[[producer]]\nnumber = 2\naddress = \"10.77.0.2\"\nclock = \"host\"\nstart_tai_ns = 1790000000000000000\nrate_ppb = 300\n" \
	"[pattern]\nschema = \"benchwright.pattern/1\"\nname = \"four\"\nsource = \"made up\"\n" \
	"[[stream]]\nid = 10\ntransport = \"tcp\"\nsize_bytes = 10\nperiod_us = 1000\nbudget_us = 500\n" \
	"[[stream]]\nid = 11\ntransport = \"udp\"\nsize_bytes = 40\nperiod_us = 2000\nbudget_us = 500\nlow_latency = true\n" \
	"[[stream]]\nid = 20\ntransport = \"tcp\"\nsize_bytes = 300\nperiod_us = 4000\nbudget_us = 4000\nlow_latency = true\n" \
	"[[stream]]\nid = 21\ntransport = \"udp\"\nsize_bytes = 1200\nperiod_us = 20000\nbudget_us = 4000\n"

enum standing { UNUSED, QUEUED, UNKNOWN, ADMITTED, GONE };

/* A connection as the model sees it. */
struct connection {
	enum standing standing;
	int stream;
	struct address source;
	port_socket sock;
	int64_t accepted_monotonic_ns;
	size_t hello_bytes;
	uint8_t hello[FRAME_HELLO_BYTES];
	uint32_t position;              /* in the current message */
	uint8_t header[FRAME_HEADER_BYTES];
	bool refused, over;             /* its bytes are not trusted any more; its end was read */
};

struct stream_model {
	const struct stream *stream;
	const struct plan_producer *producer;
	int lane;
	uint32_t warmup_end, end;
	int64_t highest;
	uint8_t seen[SLOTS_MAX];
	uint64_t received, duplicates, reordered, connections;
};

struct hostile_model {
	uint64_t foreign, bad_hello, bad_check, truncated, oversized, stale;
};

int LLVMFuzzerInitialize(int *argc, char ***argv);

static struct plan *plans[2]; /* by whether clocks are corrected */
static const struct plan *plan;
static struct script script;
static struct receiver receivers[DOOR];
static struct acceptor acceptor;
static struct account accounts[2][STREAMS]; /* as opened: by plan */
static struct incoming incoming[STREAMS];
static struct recorder recorder;
static struct clockline clockline;
static atomic_bool stops[THREADS];
static bool check_fill, door_opens_meanwhile, ending;
static struct port_tai tai;
static struct own_clock own_clock = { .tai = &tai };

static struct stream_model streams[STREAMS];
static struct hostile_model hostile[THREADS];
static struct connection connections[CONNECTIONS_MAX];
static int connection_count;

/* ---- the model ---------------------------------------------------------------------------------------------------- */

static struct connection *connection_of(port_socket sock)
{
	for (int i = 0; i < connection_count; i++) {
		if (connections[i].sock == sock && connections[i].standing != GONE)
			return &connections[i];
	}
	return NULL;
}

static int count_standing(int stream, enum standing standing)
{
	int count = 0;

	for (int i = 0; i < connection_count; i++)
		count += connections[i].stream == stream && connections[i].standing == standing;
	return count;
}

/* A whole message with a right check value has come. */
static void model_message(struct stream_model *model, const struct frame_header *header)
{
	int64_t now_tai_ns = fuzz_port.monotonic_ns + fuzz_port.tai_minus_monotonic_ns;
	uint32_t sequence = header->sequence;
	bool counted = sequence >= model->warmup_end;
	struct twoway_line line = clockline_read(&clockline);

	if (sequence >= model->end || (plan->correction == CORRECTION_TWO_WAY && line.valid &&
				       twoway_line_to_peer_ns(&line, now_tai_ns) -
					       phase_scheduled_tai_ns(model->producer, model->stream, sequence) < -1000 * MS_NS) ||
	    model->highest - sequence >= WINDOW) {
		hostile[model->lane].stale++;
		return;
	}
	if (counted && model->seen[sequence])
		model->duplicates++;
	else if (counted)
		model->received++;
	if (counted && !model->seen[sequence] && sequence < model->highest)
		model->reordered++;
	model->seen[sequence] = true;
	if (sequence > model->highest)
		model->highest = sequence;
}

static void model_datagram(struct stream_model *model, const uint8_t *bytes, size_t size_bytes, const struct address *source)
{
	struct frame_header header;

	if (source->ipv4 != model->producer->address.ipv4) {
		hostile[model->lane].foreign++;
	} else if (size_bytes < model->stream->size_bytes) {
		hostile[model->lane].truncated++;
	} else if (size_bytes > model->stream->size_bytes) {
		hostile[model->lane].oversized++;
	} else {
		bool right = frame_parse(bytes, NONCE, model->stream->id, &header) == 0;

		for (size_t i = FRAME_HEADER_BYTES; check_fill && i < size_bytes; i++)
			right = right && bytes[i] == (uint8_t)(i * 151 + 73);
		if (right)
			model_message(model, &header);
		else
			hostile[model->lane].bad_check++;
	}
}

/* One byte of an admitted connection. @return false: it is the first wrong one */
static bool model_byte(struct connection *connection, struct stream_model *model, uint8_t byte)
{
	struct frame_header header;
	uint32_t place = connection->position++;

	if (place < FRAME_HEADER_BYTES)
		connection->header[place] = byte;
	else if (check_fill && byte != (uint8_t)(place * 151 + 73))
		return false;
	if (connection->position < FRAME_HEADER_BYTES)
		return true;
	if (frame_parse(connection->header, NONCE, model->stream->id, &header) != 0)
		return false;
	if (connection->position == model->stream->size_bytes) {
		connection->position = 0;
		model_message(model, &header);
	}
	return true;
}

static void model_stream(struct connection *connection, const uint8_t *bytes, int64_t length)
{
	struct stream_model *model = &streams[connection->stream];

	promise(!connection->refused && !connection->over);
	if (length <= 0) {
		connection->over = true;
		hostile[model->lane].truncated += connection->position != 0;
	}
	for (int64_t i = 0; i < length && !connection->refused; i++)
		connection->refused = !model_byte(connection, model, bytes[i]);
	hostile[model->lane].bad_check += connection->refused;
}

/* What a hello is. Written a second time from docs/native-tools.md. */
static enum { WELCOME, OF_ANOTHER_RUN, WRONG } judge_hello(const struct connection *connection)
{
	const struct stream *stream = streams[connection->stream].stream;
	const uint8_t *hello = connection->hello;
	const uint8_t head[8] = { 'B', 'W', 'T', '1', 0, 2, (uint8_t)(stream->id >> 8), (uint8_t)stream->id };
	const uint8_t tail[8] = { 0, 0, (uint8_t)(stream->size_bytes >> 8), (uint8_t)stream->size_bytes };
	const uint8_t nonce[8] = { 0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef };

	if (connection->hello_bytes < FRAME_HELLO_BYTES || memcmp(hello, head, 8) || memcmp(hello + 16, tail, 8))
		return WRONG;
	return memcmp(hello + 8, nonce, 8) ? OF_ANOTHER_RUN : WELCOME;
}

static bool is_foreign(const struct connection *connection)
{
	return connection->source.ipv4 != streams[connection->stream].producer->address.ipv4;
}

/* ---- what the program did ------------------------------------------------------------------------------------------ */

static void open_door(void)
{
	atomic_store(&stops[DOOR], false);
	acceptor_run(&acceptor);
	for (int i = 0; i < connection_count; i++)
		promise(connections[i].standing != UNKNOWN ||
			fuzz_port.monotonic_ns - connections[i].accepted_monotonic_ns <= HELLO_TIMEOUT_MS * MS_NS);
}

static void on_accepted(port_socket sock, port_socket listener, const struct address *source)
{
	struct connection *connection = connection_of(sock);

	(void)listener;
	promise(connection && connection->standing == QUEUED && connection->source.ipv4 == source->ipv4);
	connection->standing = UNKNOWN;
	connection->accepted_monotonic_ns = fuzz_port.monotonic_ns;
}

static void on_received(port_socket sock, const uint8_t *bytes, int64_t length, bool truncated, const struct address *source)
{
	struct connection *connection = connection_of(sock);

	promise(!truncated);
	if (!connection) {
		for (int i = 0; i < STREAMS && length >= 0; i++) {
			if (streams[i].stream->transport == TRANSPORT_UDP && incoming[i].endpoints[0].sock == sock)
				model_datagram(&streams[i], bytes, (size_t)length, source);
		}
	} else if (connection->standing == UNKNOWN) {
		promise(length <= 0 || connection->hello_bytes + (size_t)length <= FRAME_HELLO_BYTES);
		if (length > 0)
			memcpy(connection->hello + connection->hello_bytes, bytes, (size_t)length);
		connection->hello_bytes += length > 0 ? (size_t)length : 0;
		return;
	} else {
		promise(connection->standing == ADMITTED);
		model_stream(connection, bytes, length);
	}
	if (door_opens_meanwhile) {
		door_opens_meanwhile = false;
		open_door();
	}
}

static void on_watched(port_socket sock, const struct port_poller *poller)
{
	struct connection *connection = connection_of(sock);

	if (!connection)
		return;
	if (poller == acceptor.poller) {
		promise(connection->standing == UNKNOWN && !is_foreign(connection));
		promise(count_standing(connection->stream, UNKNOWN) <= ACCEPTOR_UNKNOWN_MAX);
		return;
	}
	promise(poller == receivers[streams[connection->stream].lane].poller);
	promise(connection->standing == UNKNOWN && judge_hello(connection) == WELCOME);
	connection->standing = ADMITTED;
	streams[connection->stream].connections++;
	promise(count_standing(connection->stream, ADMITTED) <= RECEIVER_CONNECTIONS_MAX);
}

static void on_closed(port_socket sock)
{
	struct connection *connection = connection_of(sock);

	if (!connection)
		return;
	if (!ending && connection->standing == UNKNOWN) {
		if (is_foreign(connection))
			hostile[DOOR].foreign++;
		else if (connection->hello_bytes == FRAME_HELLO_BYTES && judge_hello(connection) == OF_ANOTHER_RUN)
			hostile[DOOR].stale++;
		else if (judge_hello(connection) == WRONG)
			hostile[DOOR].bad_hello++;
		else /* there is no room: the producer tries again */
			promise(count_standing(connection->stream, ADMITTED) == RECEIVER_CONNECTIONS_MAX);
	}
	promise(ending || connection->standing != ADMITTED || connection->refused || connection->over);
	connection->standing = GONE;
}

/* Each body of a thread runs one round. */
static void on_wait(const struct port_poller *poller)
{
	for (int i = 0; i < DOOR; i++) {
		if (poller == receivers[i].poller)
			atomic_store(&stops[i], true);
	}
	if (poller == acceptor.poller)
		atomic_store(&stops[DOOR], true);
}

/* ---- the script ---------------------------------------------------------------------------------------------------- */

static void run_round(uint8_t how)
{
	fuzz_port.spurious = how & 4;
	door_opens_meanwhile = how & 8;
	fuzz_port.turn = how >> 4;
	for (int thread = 0; thread < THREADS; thread++) {
		if ((how & 3) != thread && (how & 3) != THREADS)
			continue;
		if (thread == DOOR) {
			open_door();
			continue;
		}
		atomic_store(&stops[thread], false);
		receiver_run(&receivers[thread]);
		for (int i = 0; i < connection_count; i++) /* what is refused or over is closed by then */
			promise(connections[i].standing != ADMITTED || (!connections[i].refused && !connections[i].over) ||
				streams[connections[i].stream].lane != thread);
	}
}

static void connect_one(uint8_t which)
{
	int stream = which & 1 ? 2 : 0;
	struct address source = streams[stream].producer->address;
	port_socket sock;

	if ((which & 6) == 6)
		source.ipv4 += which;
	if (connection_count == CONNECTIONS_MAX)
		return;
	sock = fuzz_port_connect(acceptor.listeners[stream / 2].door.sock, &source);
	if (sock != PORT_SOCKET_NONE)
		connections[connection_count++] =
			(struct connection){ .standing = QUEUED, .stream = stream, .source = source, .sock = sock };
}

/* One of the latest connections, so that short scripts reach it. */
static struct connection *pick(uint8_t which)
{
	return connection_count ? &connections[connection_count - 1 - which % connection_count] : NULL;
}

static void say_hello(struct connection *connection)
{
	const struct stream *stream = streams[connection->stream].stream;
	struct frame_hello hello = { stream->id, NONCE, stream->size_bytes };
	uint8_t wire[FRAME_HELLO_BYTES];
	uint8_t place = (uint8_t)script_take(&script, 1), change = (uint8_t)script_take(&script, 1);

	frame_hello_pack(&hello, wire);
	wire[place % sizeof(wire)] ^= change;
	fuzz_port_feed(connection->sock, wire, sizeof(wire));
}

/* Make a message, right but for one byte. @return its length */
static size_t make_message(const struct stream_model *model, uint8_t *wire)
{
	const struct stream *stream = model->stream;
	uint8_t how = (uint8_t)script_take(&script, 1);
	struct frame_header header = { .sequence = (uint32_t)script_take(&script, how & 1 ? 4 : 2) };
	uint64_t place = script_take(&script, 2);

	if (how & 32) /* near the bounds of what is counted */
		header.sequence = (place & 1 ? model->end : model->warmup_end) + (header.sequence & 3) - 2;
	header.lateness_ns = frame_lateness_ns((int64_t)script_take(&script, how & 2 ? 8 : 2));
	frame_pack(&header, how & 4 ? NONCE + 1 : NONCE, stream->id, wire);
	for (size_t i = FRAME_HEADER_BYTES; i < stream->size_bytes; i++)
		wire[i] = (uint8_t)(i * 151 + 73);
	if (how & 8)
		wire[place % stream->size_bytes] ^= how >> 4 | 16;
	return how & 16 ? place % (stream->size_bytes + 2) : stream->size_bytes; /* cut, or one byte too many */
}

static void put_datagram(uint8_t which)
{
	uint8_t wire[MESSAGE_MAX_BYTES + 1] = { 0 };
	const struct stream_model *model = &streams[which & 1 ? 1 : 3];
	struct address source = { .ipv4 = model->producer->address.ipv4 + (which & 2 ? which : 0), .port = 4000 };
	port_socket sock = incoming[which & 1 ? 1 : 3].endpoints[0].sock;
	const uint8_t *bytes = wire;
	size_t size_bytes = which & 4 ? script_take_bytes(&script, (size_t)script_take(&script, 1), &bytes) :
					make_message(model, wire);

	fuzz_port_datagram(sock, bytes, size_bytes, &source);
	if (which & 8)
		fuzz_port_datagram(sock, bytes, size_bytes, &source);
}

static void publish_clock(uint8_t how)
{
	struct twoway_line line = {
		.valid = how & 1,
		.at_local_ns = fuzz_port.monotonic_ns + fuzz_port.tai_minus_monotonic_ns,
		.offset_ns = (int64_t)(int32_t)script_take(&script, 4) * (how & 2 ? MS_NS : 1),
		.rate_ppb = (int32_t)script_take(&script, 4) % 500001,
	};

	clockline_publish(&clockline, &line);
}

static void fail(uint8_t how)
{
	static const int errors[] = { -ECONNRESET, -EMFILE, -ENOMEM, -ECONNABORTED };

	switch (how & 3) {
	case 0: fuzz_port.fail_accept = errors[how >> 2 & 3]; break;
	case 1: fuzz_port_fail_read(incoming[how & 4 ? 1 : 3].endpoints[0].sock, -ECONNREFUSED); break;
	case 2: fuzz_port.stamps = how & 4; break;
	default: fuzz_port.stamp_age_ns = (int32_t)script_take(&script, 4); break;
	}
}

static void happen(void)
{
	uint8_t what = (uint8_t)script_take(&script, 1), argument = (uint8_t)script_take(&script, 1);
	struct connection *connection = pick(argument);
	uint8_t wire[MESSAGE_MAX_BYTES + 1] = { 0 };
	const uint8_t *bytes;
	size_t length;

	switch (what % 12) {
	case 0: run_round(argument); break;
	case 1: connect_one(argument); break;
	case 2: if (connection) say_hello(connection); break;
	case 3:
	case 4:
		if (!connection)
			break;
		length = make_message(&streams[connection->stream], wire);
		fuzz_port_feed(connection->sock, wire, length);
		break;
	case 5:
		length = script_take_bytes(&script, (size_t)script_take(&script, 1), &bytes);
		if (connection)
			fuzz_port_feed(connection->sock, bytes, length);
		break;
	case 6: put_datagram(argument); break;
	case 7: fuzz_port.monotonic_ns += MS_NS * (argument & 128 ? argument * 8 : argument); break;
	case 8:
		if (connection)
			fuzz_port_end(connection->sock, what & 16 ? -ECONNRESET : 0);
		break;
	case 9: fuzz_port.piece_bytes = argument; break;
	case 10: publish_clock(argument); break;
	default:
		if (argument & 128)
			fuzz_port.tai_minus_monotonic_ns += (int32_t)script_take(&script, 4);
		else
			fail(argument);
		break;
	}
}

/* ---- one input ------------------------------------------------------------------------------------------------------ */

/* What is large is opened once: 14 histograms and two buffers take longer than an input. */
static void open_once(void)
{
	for (int i = 0; i < 2; i++) {
		for (int k = 0; k < STREAMS; k++) {
			const struct stream *stream = &plans[i]->pattern->streams[k];
			int lane = stream->low_latency ? FAST : BULK;

			promise(account_open(&accounts[i][k], plans[i], stream, i ? &clockline : NULL, &recorder, lane) == 0);
		}
	}
	for (int lane = 0; lane < DOOR; lane++)
		promise(receiver_open(&receivers[lane], plans[0], &own_clock, STREAMS * RECEIVER_CONNECTIONS_MAX, &stops[lane]) == 0);
}

static void forget(struct histogram *histogram)
{
	if (histogram_count(histogram))
		histogram_reset(histogram);
}

static void open_stream(int i)
{
	const struct account *account = &accounts[plan == plans[1]][i];
	const struct stream *stream = account->stream;

	streams[i].stream = stream;
	streams[i].producer = plan_find_producer(plan, stream->producer);
	streams[i].lane = account->lane;
	streams[i].warmup_end = account->warmup_end;
	streams[i].end = account->end;
	streams[i].highest = -1;
	promise(account->end < SLOTS_MAX && account_expected(account) == (uint64_t)(plan->duration_ns / stream->period_ns));
	incoming[i].account = *account;
	forget(account->received_minus_scheduled);
	forget(account->received_minus_sent);
	forget(account->sent_minus_scheduled);
	forget(account->receive_stack);
	incoming[i].receiver = &receivers[account->lane];
	incoming[i].port = (uint16_t)(plan->base_port + stream->id);
	incoming[i].transport = receiving_transport_of(stream);
	promise(incoming[i].transport->listen(&acceptor, &incoming[i]) == 0);
}

static void open_all(void)
{
	memset(streams, 0, sizeof(streams));
	memset(hostile, 0, sizeof(hostile));
	memset(incoming, 0, sizeof(incoming));
	clockline_init(&clockline);
	connection_count = 0;
	ending = door_opens_meanwhile = false;
	promise(acceptor_open(&acceptor, plan, STREAMS, &stops[DOOR]) == 0);
	for (int lane = 0; lane < DOOR; lane++) {
		receivers[lane].plan = plan;
		receivers[lane].check_fill = check_fill;
		memset(&receivers[lane].hostile, 0, sizeof(receivers[lane].hostile));
	}
	for (int i = 0; i < STREAMS; i++)
		open_stream(i);
}

static void close_all(void)
{
	ending = true;
	for (int i = 0; i < STREAMS; i++)
		receiver_close_incoming(&incoming[i]);
	acceptor_close(&acceptor);
	fuzz_port_expect_all_closed();
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const char *const texts[] = { PLAN_HEAD("none") PLAN_REST, PLAN_HEAD("two-way") PLAN_REST };
	struct schema_error error;

	(void)argc;
	(void)argv;
	for (int i = 0; i < 2; i++)
		promise(plan_parse("plan", texts[i], strlen(texts[i]), &plans[i], &error) == 0);
	open_once();
	return 0;
}

static void compare_stream(const struct account *account, const struct stream_model *model)
{
	promise(tally_get(&account->received) == model->received && tally_get(&account->duplicates) == model->duplicates);
	promise(tally_get(&account->reordered) == model->reordered && tally_get(&account->connections) == model->connections);
	promise(model->received <= account_expected(account));
	promise(tally_get(&account->horizon) <= account_expected(account));
	promise(account_missing_so_far(account) == tally_get(&account->horizon) - model->received);
	promise(histogram_count(account->received_minus_sent) + tally_get(&account->invalid_samples) == model->received);
	promise(histogram_count(account->sent_minus_scheduled) == histogram_count(account->received_minus_sent));
	promise(histogram_count(account->received_minus_scheduled) <= model->received);
	promise(tally_get(&account->misses) <= model->received && tally_get(&account->misses_sent) <= model->received);
}

static void compare_hostile(const struct hostile *counted, const struct hostile_model *model)
{
	promise(tally_get(&counted->foreign_connections) == model->foreign && tally_get(&counted->stale) == model->stale);
	promise(tally_get(&counted->bad_hello) == model->bad_hello && tally_get(&counted->bad_check) == model->bad_check);
	promise(tally_get(&counted->truncated) == model->truncated && tally_get(&counted->oversized) == model->oversized);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t how;

	fuzz_port_reset(INT64_C(1790000005000000000));
	script = (struct script){ data, size };
	how = (uint8_t)script_take(&script, 1);
	plan = plans[how & 1];
	check_fill = how & 2;
	fuzz_port.stamps = how & 4;
	fuzz_port.watch = (struct fuzz_watch){ .accepted = on_accepted, .received = on_received, .watched = on_watched,
					       .closed = on_closed, .waits = on_wait };
	open_all();
	while (script.left)
		happen();
	run_round(THREADS);
	for (int i = 0; i < STREAMS; i++)
		compare_stream(&incoming[i].account, &streams[i]);
	for (int lane = 0; lane < DOOR; lane++)
		compare_hostile(&receivers[lane].hostile, &hostile[lane]);
	compare_hostile(&acceptor.hostile, &hostile[DOOR]);
	close_all();
	return 0;
}
