/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Fuzz target: `bw-traffic offset --serve`, behind its socket. Whatever comes: what is no request gets no answer, a request one
 * answer at most, to whom it came from and no longer than it was; each datagram is counted once; the time is looked at after at
 * most 64 of them.
 */
#include <errno.h>
#include <string.h>

#include "fuzz_port.h"
#include "traffic/offset/offset.h"

#define START_TAI_NS INT64_C(1790000000000000000)

enum { PORT = 19999, BETWEEN_LOOKS_MAX = 64 };

static struct script script;
static struct offset_server server;
static uint8_t waiting[TWOWAY_PACKET_BYTES]; /* the request that may be answered */
static bool may_answer;
static struct address waiting_source;
static uint64_t datagrams, requests, sent, unsent, reads_since_look;

/* Written a second time from docs/native-tools.md: magic, version 1, kind 1, reserved 0. */
static bool is_request(const uint8_t *bytes, int64_t length)
{
	static const uint8_t head[8] = { 'B', 'W', 'O', '1', 0, 1, 0, 1 }, reserved[4];

	return length == TWOWAY_PACKET_BYTES && !memcmp(bytes, head, sizeof(head)) &&
	       !memcmp(bytes + 12, reserved, sizeof(reserved));
}

static void on_received(port_socket sock, const uint8_t *bytes, int64_t length, bool truncated, const struct address *source)
{
	(void)sock;
	promise(++reads_since_look <= BETWEEN_LOOKS_MAX);
	may_answer = false;
	if (length < 0)
		return;
	datagrams++;
	if (truncated || !is_request(bytes, length))
		return;
	requests++;
	may_answer = true;
	memcpy(waiting, bytes, sizeof(waiting));
	waiting_source = *source;
}

static int64_t field(const uint8_t *bytes)
{
	uint64_t value = 0;

	for (int i = 0; i < 8; i++)
		value = value << 8 | bytes[i];
	return (int64_t)value;
}

static void on_sent(port_socket sock, const uint8_t *bytes, size_t size_bytes, const struct address *peer)
{
	(void)sock;
	promise(may_answer && size_bytes == TWOWAY_PACKET_BYTES);
	may_answer = false;
	promise(peer->ipv4 == waiting_source.ipv4 && peer->port == waiting_source.port);
	promise(bytes[7] == TWOWAY_REPLY && !memcmp(bytes, waiting, 7) && !memcmp(bytes + 8, waiting + 8, 24));
	promise(field(bytes + 32) <= field(bytes + 40));
	promise(field(bytes + 40) == fuzz_port.monotonic_ns + fuzz_port.tai_minus_monotonic_ns);
	sent++;
}

static void put_request(const struct address *source)
{
	struct twoway_packet packet = { .kind = TWOWAY_REQUEST };
	uint8_t wire[TWOWAY_PACKET_BYTES + 1] = { 0 };
	uint8_t place = (uint8_t)script_take(&script, 1), change = (uint8_t)script_take(&script, 1);

	packet.sequence = (uint32_t)script_take(&script, 1);
	packet.t1_local_ns = (int64_t)script_take(&script, 8);
	twoway_pack(&packet, wire);
	wire[place % TWOWAY_PACKET_BYTES] ^= change;
	fuzz_port_datagram(server.sock, wire, TWOWAY_PACKET_BYTES + (place >> 7), source); /* or a byte too many */
}

static void put_bytes(const struct address *source)
{
	const uint8_t *bytes;
	size_t length = script_take_bytes(&script, (size_t)script_take(&script, 1), &bytes);

	fuzz_port_datagram(server.sock, bytes, length, source);
}

/* Something happens; false: the server is to look. */
static bool happen(void)
{
	static const int errors[] = { -ECONNREFUSED, -EINTR, -ENOMEM, -ENETUNREACH };
	uint8_t what = (uint8_t)script_take(&script, 1);
	struct address source = { .ipv4 = 0x0a000000u | what >> 5, .port = (uint16_t)(what >> 5 ? 5000 + (what >> 5) : PORT) };
	int error = errors[what >> 6];

	switch (what & 7) {
	case 0: return false;
	case 1: put_request(&source); break;
	case 2: put_bytes(&source); break;
	case 3: fuzz_port.stamp_age_ns = (int32_t)script_take(&script, 4); break;
	case 4: fuzz_port_fail_read(server.sock, error); break;
	case 5: unsent += !fuzz_port.fail_send; fuzz_port.fail_send = error; break;
	case 6: fuzz_port.fail_wait = error; break;
	default: fuzz_port.tai_minus_monotonic_ns += (int32_t)script_take(&script, 4); break;
	}
	return true;
}

static void on_wait(const struct port_poller *poller)
{
	(void)poller;
	reads_since_look = 0;
	while (script.left && happen())
		;
	fuzz_port.stop = !script.left;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct address local = { .ipv4 = 0x0a000000u, .port = PORT };

	fuzz_port_reset(START_TAI_NS);
	fuzz_port.watch = (struct fuzz_watch){ .received = on_received, .sent = on_sent, .waits = on_wait };
	script = (struct script){ data, size };
	fuzz_port.stamps = script_take(&script, 1) & 1;
	memset(&server, 0, sizeof(server));
	datagrams = requests = sent = unsent = reads_since_look = 0;
	may_answer = false;
	promise(offset_server_open(&server, &local) == 0);
	server.end_monotonic_ns = fuzz_port.monotonic_ns + INT64_C(100000000) * (int64_t)(1 + script_take(&script, 1));
	offset_server_run(&server);
	unsent -= fuzz_port.fail_send != 0; /* a failure that no reply has met */
	promise(server.answered == sent - unsent && server.unsent == unsent);
	promise(server.refused == datagrams - requests && sent == requests);
	offset_server_close(&server);
	fuzz_port_expect_all_closed();
	return 0;
}
