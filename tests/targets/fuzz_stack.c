/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Fuzz target: packets into the user-mode stack, with a listener, a connection of its own, and sockets of UDP. An input is a list of
 * steps: a packet as it is, a segment whose numbers lie near those of its connection and whose checksum is right, time that passes, a
 * call of the program. Whatever comes, each packet that leaves is sound, and in the end nothing is left.
 */
#include <string.h>
#include <sys/socket.h>

#include "../traffic_gen/fuzz.h"
#include "stack.h"

enum { PORT = 7000, DATAGRAM_PORT = 7001, PEER_PORT = 40000, PEERS = 4, SOCKETS_MAX = 16, US_PER_MS = 1000 };
enum { IPV4_BYTES = 20, TCP_BYTES = 20, TCP = 6, UDP = 17, SYN = 2, FIN = 1, RST = 4, PACKET_MAX = 2048 };
enum { TIME_WAIT_MS = 70000, TICK_MS = 250 };

static const struct stack_address own[2] = {
	{ .family = STACK_IPV4, .ip = { 10, 1, 0, 1 } },
	{ .family = STACK_IPV6, .ip = { 0xfd, [15] = 1 } },
};
static const uint8_t peer_ipv4[4] = { 10, 1, 0, 2 };

/* What a peer knows of its connection: of the stack's segments to its port. */
static struct {
	uint32_t stack_next, next;
} peers[PEERS];
static struct stack_socket *sockets[SOCKETS_MAX];
static uint64_t now_us;
static uint32_t seed;

/* What is left of an input. */
struct input {
	const uint8_t *bytes;
	size_t left;
};

static uint8_t take(struct input *input)
{
	if (!input->left)
		return 0;
	input->left--;
	return *input->bytes++;
}

static uint16_t take16(struct input *input)
{
	uint8_t high = take(input);

	return (uint16_t)(high << 8 | take(input));
}

static size_t take_bytes(struct input *input, uint8_t *bytes, size_t count)
{
	size_t taken = 0;

	while (taken < count && input->left)
		bytes[taken++] = take(input);
	return taken;
}

static uint16_t read16(const uint8_t *bytes)
{
	return (uint16_t)(bytes[0] << 8 | bytes[1]);
}

static uint32_t read32(const uint8_t *bytes)
{
	return (uint32_t)read16(bytes) << 16 | read16(bytes + 2);
}

static void write16(uint8_t *bytes, uint16_t value)
{
	bytes[0] = (uint8_t)(value >> 8);
	bytes[1] = (uint8_t)value;
}

static void write32(uint8_t *bytes, uint32_t value)
{
	write16(bytes, (uint16_t)(value >> 16));
	write16(bytes + 2, (uint16_t)value);
}

static uint16_t sum(const uint8_t *bytes, size_t size, uint32_t start)
{
	for (size_t i = 0; i + 1 < size; i += 2)
		start += read16(bytes + i);
	if (size & 1)
		start += (uint32_t)bytes[size - 1] << 8;
	while (start >> 16)
		start = (start & 0xffff) + (start >> 16);
	return (uint16_t)~start;
}

/* Of the addresses, protocol and length that TCP's checksum covers besides. */
static uint32_t pseudo(const uint8_t *packet, size_t transport_bytes)
{
	uint32_t total = packet[9] + (uint32_t)transport_bytes;

	for (int i = 12; i < 20; i += 2)
		total += read16(packet + i);
	return total;
}

static void output(void *argument, const uint8_t *packet, size_t size)
{
	const uint8_t *tcp = packet + IPV4_BYTES;
	size_t header, length;
	uint16_t place;

	(void)argument;
	promise(size >= IPV4_BYTES && size <= 1500);
	if (packet[0] >> 4 != 4) {
		promise(packet[0] >> 4 == 6 && (size_t)read16(packet + 4) + 40 == size);
		return;
	}
	promise(packet[0] == 0x45 && read16(packet + 2) == size && sum(packet, IPV4_BYTES, 0) == 0);
	if (packet[9] != TCP)
		return;
	header = (size_t)(tcp[12] >> 4) * 4;
	promise(size >= IPV4_BYTES + TCP_BYTES && header >= TCP_BYTES && IPV4_BYTES + header <= size);
	promise(sum(tcp, size - IPV4_BYTES, pseudo(packet, size - IPV4_BYTES)) == 0);
	length = size - IPV4_BYTES - header + !!(tcp[13] & SYN) + !!(tcp[13] & FIN);
	place = (uint16_t)(read16(tcp + 2) - PEER_PORT);
	if (place < PEERS && !(tcp[13] & RST)) {
		peers[place].stack_next = read32(tcp + 4) + (uint32_t)length;
		peers[place].next = read32(tcp + 8);
	}
}

static void changed(void *argument, struct stack_socket *sock)
{
	(void)argument;
	stack_ready(sock);
}

static void fill(void *argument, void *bytes, size_t size)
{
	uint8_t *each = bytes;

	(void)argument;
	while (size--) {
		seed = seed * 1664525u + 1013904223u;
		*each++ = (uint8_t)(seed >> 24);
	}
}

static void begin(void)
{
	static const struct stack_host host = { .output = output, .changed = changed, .random = fill };
	static bool begun;

	if (begun)
		return;
	promise(stack_init(&host, NULL, 0) == 0);
	begun = true;
}

/* A packet as the input has it. */
static void put_packet(struct input *input)
{
	uint8_t packet[PACKET_MAX];
	size_t size = take_bytes(input, packet, take16(input) % PACKET_MAX);

	stack_input(packet, size);
}

/* A segment or a datagram of one of the peers, sound but for what it says. */
static void put_transport(struct input *input, uint8_t protocol)
{
	uint8_t packet[PACKET_MAX] = { 0x45, [8] = 64 }, *transport = packet + IPV4_BYTES;
	uint8_t place = take(input) % PEERS, options = protocol == TCP ? take(input) % 11 * 4 : 0;
	size_t size = IPV4_BYTES, body = options + take16(input) % (PACKET_MAX - IPV4_BYTES - TCP_BYTES - 40);

	packet[9] = protocol;
	memcpy(packet + 12, peer_ipv4, 4);
	memcpy(packet + 16, own[0].ip, 4);
	write16(transport, (uint16_t)(PEER_PORT + place));
	if (protocol == TCP) {
		write16(transport + 2, place ? PORT : PORT + 1); /* the first is who the stack connects to */
		write32(transport + 4, peers[place].next + (uint32_t)(int16_t)take16(input));
		write32(transport + 8, peers[place].stack_next + (uint32_t)(int16_t)take16(input));
		transport[12] = (uint8_t)((TCP_BYTES + options) << 2);
		transport[13] = take(input);
		write16(transport + 14, take16(input));
		size += TCP_BYTES + take_bytes(input, transport + TCP_BYTES, body);
		if (size < (size_t)(IPV4_BYTES + TCP_BYTES + options))
			size = IPV4_BYTES + TCP_BYTES + options;
		write16(packet + 2, (uint16_t)size);
		write16(transport + 16, sum(transport, size - IPV4_BYTES, pseudo(packet, size - IPV4_BYTES)));
	} else {
		write16(transport + 2, DATAGRAM_PORT);
		size += 8 + take_bytes(input, transport + 8, body);
		write16(packet + 2, (uint16_t)size);
		write16(transport + 4, (uint16_t)(size - IPV4_BYTES));
	}
	write16(packet + 10, sum(packet, IPV4_BYTES, 0));
	stack_input(packet, size);
}

static void pass_ms(unsigned int ms)
{
	now_us += (uint64_t)ms * US_PER_MS;
	stack_advance_us(now_us);
}

static void keep(struct stack_socket *sock)
{
	for (int i = 0; sock && i < SOCKETS_MAX; i++) {
		if (!sockets[i]) {
			sockets[i] = sock;
			return;
		}
	}
	if (sock)
		stack_close(sock);
}

/* A call of the program. */
static void call(struct input *input)
{
	static uint8_t room[65536];
	struct stack_socket **sock = &sockets[take(input) % SOCKETS_MAX];
	struct stack_info info;
	int err;

	if (!*sock)
		return;
	switch (take(input) % 8) {
	case 0: stack_receive(*sock, room, take16(input), 0, NULL); break;
	case 1: stack_send(*sock, room, take16(input), take(input) & STACK_MORE, NULL); break;
	case 2: keep(stack_accept(*sock, NULL, &err)); break;
	case 3: stack_shutdown(*sock, take(input) % 3); break;
	case 4: stack_info(*sock, &info); break;
	case 5: take(input) & 1 ? stack_take_error(*sock) : stack_take_soft_error(*sock); break;
	case 6: stack_set(*sock, (enum stack_option)(take(input) % 11), take16(input)); break;
	default:
		if (take(input) & 1) {
			stack_close(*sock);
			*sock = NULL;
		}
	}
}

static void open_sockets(void)
{
	struct stack_address any = { .family = STACK_IPV6, .port = PORT }, peer = { .family = STACK_IPV4, .port = PEER_PORT }, local = own[0];
	int err;

	memcpy(peer.ip, peer_ipv4, sizeof(peer_ipv4));
	sockets[0] = stack_open(STACK_IPV6, STACK_TCP, &err);
	promise(sockets[0] && stack_bind(sockets[0], &any) == 0 && stack_listen(sockets[0], 4) == 0);
	sockets[1] = stack_open(STACK_IPV4, STACK_TCP, &err);
	local.port = PORT + 1;
	promise(sockets[1] && stack_bind(sockets[1], &local) == 0 && stack_connect(sockets[1], &peer) < 0);
	sockets[2] = stack_open(STACK_IPV6, STACK_UDP, &err);
	any.port = DATAGRAM_PORT;
	promise(sockets[2] && stack_bind(sockets[2], &any) == 0);
	sockets[3] = stack_open(STACK_IPV4, STACK_UDP, &err);
	peer.port++;
	promise(sockets[3] && stack_connect(sockets[3], &peer) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = { data, size };

	begin();
	for (int i = 0; i < 2; i++)
		promise(stack_add_address(&own[i]) == 0);
	memset(peers, 0, sizeof(peers));
	open_sockets();
	while (input.left) {
		switch (take(&input) % 8) {
		case 0: put_packet(&input); break;
		case 1: put_transport(&input, UDP); break;
		case 2: pass_ms(take(&input) * 10u); break;
		case 3: call(&input); break;
		default: put_transport(&input, TCP); break;
		}
	}
	for (int i = 0; i < SOCKETS_MAX; i++) {
		if (sockets[i])
			stack_close(sockets[i]);
		sockets[i] = NULL;
	}
	for (int i = 0; i < 2; i++)
		promise(stack_remove_address(&own[i]) == 0);
	for (int ms = 0; ms < TIME_WAIT_MS; ms += TICK_MS)
		pass_ms(TICK_MS);
	return 0;
}
