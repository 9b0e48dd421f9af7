/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ways for a program's packets between the card and its memory, without a stack: what arrives is counted, or sent back.
 *
 *     packet_path udp INTERFACE PORT ROLE BUSY SOCKET      a socket of the kernel's own stack
 *     packet_path card INTERFACE PORT ROLE BUSY SOCKET     a socket of AF_XDP on the card
 *     packet_path shared INTERFACE PORT ROLE BUSY SOCKET   the second of two that share the first one's memory, and its fill ring
 *     packet_path veth INTERFACE PORT ROLE BUSY SOCKET     by bw-stackd at SOCKET: memory of its own, behind a veth
 *     packet_path flood ADDRESS PORT SIZE MS               send datagrams: {"sent", "cpu_s"}
 *     packet_path ask ADDRESS PORT SIZE COUNT INTERVAL_US  send one, wait for it: {"trips_ns", "lost"}
 *
 * ROLE is sink or echo; BUSY is 1: never sleep. A receiver says `ready`; at SIGTERM it prints what came: {"frames", "seconds", "cpu_s"}.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_xdp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "accel/port_rings.h"
#include "accel/port_stackd.h"
#include "bpf/port_bpf.h"
#include "packet_path_program.h"

#ifndef XDP_USE_SG
#define XDP_USE_SG (1 << 4)
#endif
#define NS_PER_S INT64_C(1000000000)

/* As bw-stackd has them. */
enum { FRAME_BYTES = 4096, HEADROOM_BYTES = 2, RECEIVE_RING = 4096, TRANSMIT_RING = 2048, FRAMES = RECEIVE_RING + TRANSMIT_RING };
enum { TURN_FRAMES = 64, MAC_BYTES = 6, IP_AT = 26, IP_BYTES = 4, PORTS_AT = 34, PORT_BYTES = 2, SIZE_MAX_BYTES = 9000, ANSWER_MS = 200,
       BIND_TRIES = 300 };

static volatile sig_atomic_t ended;
static uint64_t frames;
static int64_t first_monotonic_ns, last_monotonic_ns;
static bool echoes;
static struct rings rings;

static int64_t now_monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

static double cpu_s(void)
{
	struct rusage used;

	getrusage(RUSAGE_SELF, &used);
	return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) + (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

static void fail(const char *what, int err)
{
	fprintf(stderr, "packet_path: %s: %s\n", what, strerror(err));
	exit(1);
}

static void end(int number)
{
	(void)number;
	ended = 1;
}

static void count(uint64_t more)
{
	if (!more)
		return;
	last_monotonic_ns = now_monotonic_ns();
	if (!frames)
		first_monotonic_ns = last_monotonic_ns;
	frames += more;
}

/* Frames. */

static void swap(uint8_t *one, uint8_t *other, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++) {
		uint8_t byte = one[i];

		one[i] = other[i];
		other[i] = byte;
	}
}

static void take(const uint8_t *frame, size_t size_bytes)
{
	uint8_t back[SIZE_MAX_BYTES + 64];

	if (!echoes || size_bytes > sizeof(back))
		return;
	memcpy(back, frame, size_bytes);
	swap(back, back + MAC_BYTES, MAC_BYTES);
	swap(back + IP_AT, back + IP_AT + IP_BYTES, IP_BYTES);
	swap(back + PORTS_AT, back + PORTS_AT + PORT_BYTES, PORT_BYTES);
	rings_send(&rings, back, MAC_BYTES, back + MAC_BYTES, size_bytes - MAC_BYTES);
}

static void serve_frames(bool busy)
{
	while (!ended) {
		struct pollfd waits = { .fd = rings.fd, .events = POLLIN };

		if (!rings_waiting(&rings) && !busy)
			poll(&waits, 1, -1);
		count(rings_receive(&rings, take, TURN_FRAMES));
		rings_flush(&rings);
	}
}

static void set_ring(int fd, int which, int frame_count)
{
	if (setsockopt(fd, SOL_XDP, which, &frame_count, sizeof(frame_count)))
		fail("ring", errno);
}

/* A socket on the card's first queue: with memory of its own, or with that of another one. */
static int open_socket(int memory, int owner, uint32_t interface_index)
{
	struct xdp_umem_reg about = { .len = (uint64_t)FRAMES * FRAME_BYTES, .chunk_size = FRAME_BYTES, .headroom = HEADROOM_BYTES };
	struct sockaddr_xdp address = { .sxdp_family = AF_XDP, .sxdp_ifindex = interface_index,
					.sxdp_flags = XDP_COPY | XDP_USE_SG | XDP_USE_NEED_WAKEUP };
	const int send_bytes = 32 << 20;
	int fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);

	if (fd < 0)
		fail("AF_XDP", errno);
	set_ring(fd, XDP_RX_RING, RECEIVE_RING);
	set_ring(fd, XDP_TX_RING, TRANSMIT_RING);
	if (owner >= 0) {
		address.sxdp_flags = XDP_SHARED_UMEM;
		address.sxdp_shared_umem_fd = (uint32_t)owner;
	} else {
		about.addr = (uint64_t)(uintptr_t)mmap(NULL, about.len, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
		if (setsockopt(fd, SOL_XDP, XDP_UMEM_REG, &about, sizeof(about)))
			fail("memory", errno);
		set_ring(fd, XDP_UMEM_FILL_RING, RECEIVE_RING);
		set_ring(fd, XDP_UMEM_COMPLETION_RING, TRANSMIT_RING);
	}
	setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &send_bytes, sizeof(send_bytes));
	/* The kernel gives a queue back a while after its last socket was closed. */
	for (int tries = 0; bind(fd, (struct sockaddr *)&address, sizeof(address)); tries++) {
		const struct timespec pause = { .tv_nsec = 10000000 };

		if (errno != EBUSY || tries == BIND_TRIES)
			fail("bind to the card", errno);
		nanosleep(&pause, NULL);
	}
	return fd;
}

/* Let the rings of what comes and goes be those of another socket; the memory's stay. */
static void take_rings_of(int fd)
{
	struct ring *own[] = { &rings.receive, &rings.transmit };
	const uint64_t pages[] = { XDP_PGOFF_RX_RING, XDP_PGOFF_TX_RING };
	struct xdp_mmap_offsets offsets;
	socklen_t length = sizeof(offsets);

	if (getsockopt(fd, SOL_XDP, XDP_MMAP_OFFSETS, &offsets, &length))
		fail("rings", errno);
	for (int i = 0; i < 2; i++) {
		const struct xdp_ring_offset *at = i ? &offsets.tx : &offsets.rx;
		uint8_t *map;

		own[i]->map_bytes = at->desc + own[i]->size * sizeof(struct xdp_desc);
		map = mmap(NULL, own[i]->map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, (off_t)pages[i]);
		if (map == MAP_FAILED)
			fail("rings", errno);
		own[i]->map = map;
		own[i]->producer = (uint32_t *)(void *)(map + at->producer);
		own[i]->consumer = (uint32_t *)(void *)(map + at->consumer);
		own[i]->flags = (uint32_t *)(void *)(map + at->flags);
		own[i]->entries = map + at->desc;
	}
	rings.fd = fd;
}

/* Send the frames of a port to a socket. */
static void lead_to(int fd, uint32_t port, uint32_t interface_index)
{
	static char log[BPF_LOG_BYTES];
	const uint32_t first = 0;
	struct bpf_named_map maps[] = { { "ports", -1 }, { "sockets", -1 }, { NULL, -1 } };
	bool native;
	int program, link;

	maps[0].map = bpf_make_map(BPF_MAP_TYPE_HASH, "ports", sizeof(port), sizeof(first), 1, 0);
	maps[1].map = bpf_make_map(BPF_MAP_TYPE_XSKMAP, "sockets", sizeof(first), sizeof(fd), 1, 0);
	if (maps[0].map < 0 || maps[1].map < 0 || bpf_map_update(maps[0].map, &port, &first, BPF_ANY) ||
	    bpf_map_update(maps[1].map, &first, &fd, BPF_ANY))
		fail("maps", errno);
	program = bpf_load(&path_card, BPF_XDP, maps, log);
	link = program < 0 ? program : bpf_attach_xdp(program, (int)interface_index, &native);
	if (link < 0) {
		fputs(log, stderr);
		fail("XDP", -link);
	}
}

static void open_on_card(const char *card, uint32_t port, bool shared)
{
	const struct stackd_answer sizes = { .frames = FRAMES, .frame_bytes = FRAME_BYTES, .receive_ring = RECEIVE_RING,
					     .fill_ring = RECEIVE_RING, .transmit_ring = TRANSMIT_RING,
					     .completion_ring = TRANSMIT_RING };
	uint32_t interface_index = if_nametoindex(card);
	int memory = memfd_create("frames", MFD_CLOEXEC), first, second, err;

	if (memory < 0 || ftruncate(memory, (off_t)FRAMES * FRAME_BYTES))
		fail("memory", errno);
	first = open_socket(memory, -1, interface_index);
	second = shared ? open_socket(memory, first, interface_index) : first;
	err = rings_open(&rings, first, memory, &sizes);
	if (err)
		fail("rings", -err);
	if (shared)
		take_rings_of(second);
	lead_to(second, port, interface_index);
}

static void hear(const struct stackd_answer *event)
{
	(void)event;
}

/* A socket of UDP of the kernel's. */
static int open_udp(const char *address, uint32_t port)
{
	struct sockaddr_in own = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	int on = 1, fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (address && inet_pton(AF_INET, address, &own.sin_addr) != 1)
		fail(address, EINVAL);
	setsockopt(fd, SOL_SOCKET, SO_NO_CHECK, &on, sizeof(on)); /* nobody in between sees to checksums */
	if (address ? connect(fd, (struct sockaddr *)&own, sizeof(own)) : bind(fd, (struct sockaddr *)&own, sizeof(own)))
		fail("UDP", errno);
	return fd;
}

static void open_by_service(const char *path, uint32_t port)
{
	struct stackd_request request = { .verb = STACKD_HELLO };
	struct stackd_answer answer, hello;
	int service = stackd_connect(path), given[2], err;

	err = service < 0 ? service : stackd_ask(service, &request, -1, &hello, given, hear);
	err = err ? err : hello.result;
	err = err ? err : rings_open(&rings, given[0], given[1], &hello);
	request = (struct stackd_request){ .verb = STACKD_BIND, .protocol = IPPROTO_UDP, .port = (uint16_t)port };
	err = err ? err : stackd_ask(service, &request, open_udp(NULL, port), &answer, NULL, hear);
	err = err ? err : answer.result;
	if (err)
		fail(path, -err);
}

/* Datagrams. */

static void serve_udp(int fd, bool busy)
{
	static uint8_t room[TURN_FRAMES][SIZE_MAX_BYTES];
	struct sockaddr_in from[TURN_FRAMES];
	struct iovec parts[TURN_FRAMES];
	struct mmsghdr messages[TURN_FRAMES];

	while (!ended) {
		int got;

		for (int i = 0; i < TURN_FRAMES; i++) {
			parts[i] = (struct iovec){ room[i], sizeof(room[i]) };
			messages[i] = (struct mmsghdr){ .msg_hdr = { .msg_name = &from[i], .msg_namelen = sizeof(from[i]),
								     .msg_iov = &parts[i], .msg_iovlen = 1 } };
		}
		got = recvmmsg(fd, messages, TURN_FRAMES, busy ? MSG_DONTWAIT : MSG_WAITFORONE, NULL);
		if (got <= 0)
			continue;
		count((uint64_t)got);
		for (int i = 0; echoes && i < got; i++)
			parts[i].iov_len = messages[i].msg_len;
		if (echoes)
			sendmmsg(fd, messages, (unsigned int)got, 0);
	}
}

static int receive(char **argv)
{
	const struct sigaction ends = { .sa_handler = end };
	const char *way = argv[1], *card = argv[2];
	uint32_t port = (uint32_t)atoi(argv[3]);
	bool busy = atoi(argv[5]) != 0;
	int udp = -1;

	echoes = strcmp(argv[4], "echo") == 0;
	sigaction(SIGTERM, &ends, NULL);
	if (strcmp(way, "udp") == 0)
		udp = open_udp(NULL, port);
	else if (strcmp(way, "veth") == 0)
		open_by_service(argv[6], port);
	else
		open_on_card(card, port, strcmp(way, "shared") == 0);
	printf("ready\n");
	fflush(stdout);
	if (udp >= 0)
		serve_udp(udp, busy);
	else
		serve_frames(busy);
	printf("{\"frames\":%llu,\"seconds\":%.6f,\"cpu_s\":%.6f}\n", (unsigned long long)frames,
	       (double)(last_monotonic_ns - first_monotonic_ns) / NS_PER_S, cpu_s());
	return 0;
}

static int flood(char **argv)
{
	static uint8_t data[SIZE_MAX_BYTES];
	struct iovec part = { data, (size_t)atoi(argv[4]) };
	struct mmsghdr messages[TURN_FRAMES];
	int64_t until_monotonic_ns = now_monotonic_ns() + atoi(argv[5]) * (NS_PER_S / 1000);
	unsigned long long sent = 0;
	int fd = open_udp(argv[2], (uint32_t)atoi(argv[3]));

	for (int i = 0; i < TURN_FRAMES; i++)
		messages[i] = (struct mmsghdr){ .msg_hdr = { .msg_iov = &part, .msg_iovlen = 1 } };
	while (now_monotonic_ns() < until_monotonic_ns) {
		int done = sendmmsg(fd, messages, TURN_FRAMES, 0);

		sent += done > 0 ? (unsigned int)done : 0;
	}
	printf("{\"sent\":%llu,\"cpu_s\":%.6f}\n", sent, cpu_s());
	return 0;
}

static int ask(char **argv)
{
	static uint8_t data[SIZE_MAX_BYTES];
	size_t size_bytes = (size_t)atoi(argv[4]);
	int trips = atoi(argv[5]), lost = 0, fd = open_udp(argv[2], (uint32_t)atoi(argv[3]));
	struct timespec pause = { .tv_nsec = atoi(argv[6]) * 1000L };
	struct pollfd waits = { .fd = fd, .events = POLLIN };

	printf("{\"trips_ns\":[");
	for (int i = 0; i < trips; i++) {
		int64_t began_ns;

		nanosleep(&pause, NULL);
		began_ns = now_monotonic_ns();
		if (send(fd, data, size_bytes, 0) < 0 || poll(&waits, 1, ANSWER_MS) != 1 || recv(fd, data, sizeof(data), 0) < 0) {
			lost++;
			continue;
		}
		printf("%s%lld", i > lost ? "," : "", (long long)(now_monotonic_ns() - began_ns));
	}
	printf("],\"lost\":%d}\n", lost);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 7 && strcmp(argv[1], "ask") == 0)
		return ask(argv);
	if (argc == 6 && strcmp(argv[1], "flood") == 0)
		return flood(argv);
	return argc == 7 ? receive(argv) : 2;
}
