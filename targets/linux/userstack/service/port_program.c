/* SPDX-License-Identifier: Apache-2.0 */
/* What a program gets: a veth, memory for frames, a socket of AF_XDP, and its part of the packet path. */
#include <errno.h>
#include <fcntl.h>
#include <linux/if_xdp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "events/bwevents.h"
#include "service/port_netlink.h"
#include "service/port_service.h"

#ifndef XDP_USE_SG
#define XDP_USE_SG (1 << 4)
#endif

/*
 * A window of 4 MB takes 2900 frames of 1500 bytes, and 1400 of jumbo frames, which take three each. The headroom puts the headers
 * of IP on a multiple of 16: behind the 256 bytes that XDP keeps, and the 14 of Ethernet.
 */
enum {
	FRAME_BYTES = 4096, HEADROOM_BYTES = 2, RECEIVE_RING = 4096, TRANSMIT_RING = 2048, FRAMES = RECEIVE_RING + TRANSMIT_RING,
	SEND_BYTES = 32 * 1024 * 1024, /* of what is on its way through the kernel: never less than the ring */
};

#define MEMORY_BYTES ((size_t)FRAMES * FRAME_BYTES)

/* Return memory that cannot be made smaller below the kernel's hands, as a descriptor. */
BW_INTERVAL_POINT(program_made, "stackd", "program-made", "a program's memory, sockets and rings were made; tag: its process");
BW_EVENT_POINT(program_refused, "stackd", "program-refused", "they could not be; tag: its process");
BW_EVENT_POINT(program_ended, "stackd", "program-ended", "a program has ended, or left; tag: its process");

static int make_memory(void)
{
	int memory = memfd_create("bw-stackd frames", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (memory < 0)
		return -errno;
	if (ftruncate(memory, (off_t)MEMORY_BYTES) < 0 || fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0) {
		int err = -errno;

		close(memory);
		return err;
	}
	return memory;
}

static int set_ring(int socket, int which, int frames)
{
	return setsockopt(socket, SOL_XDP, which, &frames, sizeof(frames)) ? -errno : 0;
}

/* Let the kernel have the memory: it holds the pages from then on, and needs no mapping. */
static int register_memory(int socket, int memory)
{
	struct xdp_umem_reg about = { .len = MEMORY_BYTES, .chunk_size = FRAME_BYTES, .headroom = HEADROOM_BYTES };
	void *mapped = mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	int err = 0;

	if (mapped == MAP_FAILED)
		return -errno;
	about.addr = (uint64_t)(uintptr_t)mapped;
	if (setsockopt(socket, SOL_XDP, XDP_UMEM_REG, &about, sizeof(about)) < 0)
		err = -errno;
	munmap(mapped, MEMORY_BYTES);
	return err;
}

static int set_up_socket(int socket, int memory)
{
	const int send_bytes = SEND_BYTES;
	int err = register_memory(socket, memory);

	if (!err)
		err = set_ring(socket, XDP_RX_RING, RECEIVE_RING);
	if (!err)
		err = set_ring(socket, XDP_TX_RING, TRANSMIT_RING);
	if (!err)
		err = set_ring(socket, XDP_UMEM_FILL_RING, RECEIVE_RING);
	if (!err)
		err = set_ring(socket, XDP_UMEM_COMPLETION_RING, TRANSMIT_RING);
	if (!err && setsockopt(socket, SOL_SOCKET, SO_SNDBUFFORCE, &send_bytes, sizeof(send_bytes)) < 0)
		err = -errno;
	return err;
}

static int bind_socket(int socket, int interface_index)
{
	const struct sockaddr_xdp address = {
		.sxdp_family = AF_XDP, .sxdp_flags = XDP_COPY | XDP_USE_SG | XDP_USE_NEED_WAKEUP,
		.sxdp_ifindex = (uint32_t)interface_index,
	};

	return bind(socket, (const struct sockaddr *)&address, sizeof(address)) ? -errno : 0;
}

/* In the service's own namespace. */
static int begin_there(struct service *service, struct program *program, const char *name, int memory)
{
	int err;

	program->own_index = (int)if_nametoindex(name);
	program->socket = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (!program->own_index || program->socket < 0)
		return -errno;
	err = set_up_socket(program->socket, memory);
	if (!err)
		err = netlink_up(service->own_netlink, program->own_index);
	if (!err)
		err = bind_socket(program->socket, program->own_index);
	return err ? err : path_deliver(&program->path, program->own_index, program->socket, service->log);
}

static int begin_over_there(struct service *service, struct program *program, const char *name, int memory)
{
	int err = namespaces_enter(service->namespaces.own);

	if (err)
		return err;
	err = begin_there(service, program, name, memory);
	if (namespaces_enter(service->namespaces.home)) {
		fputs("bw-stackd serve: cannot come back to its namespace\n", stderr);
		abort();
	}
	return err;
}

static int make_veth(struct service *service, struct program *program, const char *card_end, const char *program_end)
{
	const struct netlink_veth veth = {
		card_end, program_end, service->namespaces.own, service->interface.mtu_bytes,
	};
	int err = netlink_make_veth(service->netlink, &veth);

	if (err)
		return err;
	program->path.card_index = (int)if_nametoindex(card_end);
	guard_tell(service->guard, program->path.number % PATH_SLOTS, program->path.card_index);
	return namespaces_without_ipv6(card_end);
}

static int begin(struct service *service, struct program *program, int memory)
{
	const uint32_t slot = program->path.number % PATH_SLOTS;
	char card_end[IF_NAMESIZE], program_end[IF_NAMESIZE];
	int err;

	snprintf(card_end, sizeof(card_end), VETH_NAME, service->interface.index, (unsigned int)slot);
	snprintf(program_end, sizeof(program_end), "program%u", (unsigned int)slot);
	err = make_veth(service, program, card_end, program_end);
	if (!err)
		err = begin_over_there(service, program, program_end, memory);
	if (!err)
		err = path_connect(&service->path, &program->path);
	return err ? err : netlink_up(service->netlink, program->path.card_index);
}

/* A number whose slot is free; 0: there is none. */
static uint32_t free_number(struct service *service)
{
	bool taken[PATH_SLOTS] = { false };

	for (int i = 0; i < CLIENTS_MAX; i++) {
		if (service->clients[i].program)
			taken[service->clients[i].program->path.number % PATH_SLOTS] = true;
	}
	for (int slot = 0; slot < PATH_SLOTS; slot++)
		taken[slot] = taken[slot] || service->left[slot];
	for (int tries = 0; tries < PATH_SLOTS + 1; tries++) {
		uint32_t number = ++service->last_number;

		if (number && !taken[number % PATH_SLOTS])
			return number;
	}
	return 0;
}

int program_begin(struct service *service, struct client *client, struct stackd_answer *answer, int *memory)
{
	uint32_t number = free_number(service);
	struct program *program;
	uint64_t began_ticks;
	int err;

	if (!number && programs_remove_one(service))
		number = free_number(service);
	if (!number)
		return -ENOSPC;
	program = calloc(1, sizeof(*program));
	if (!program)
		return -ENOMEM;
	program->path = (struct path_program){ number, 0, -1, -1, -1, -1 };
	program->socket = program->page = -1;
	client->program = program;
	began_ticks = BW_INTERVAL_BEGIN(program_made);
	*memory = make_memory();
	err = *memory < 0 ? *memory : begin(service, program, *memory);
	if (err) {
		BW_EVENT(program_refused, client->who.pid);
		fprintf(stderr, "%sbw-stackd serve: process %d: %s\n", service->log, (int)client->who.pid, strerror(-err));
		program_end(service, client);
		return err;
	}
	BW_INTERVAL_END(program_made, began_ticks, client->who.pid);
	answer->frames = FRAMES;
	answer->frame_bytes = FRAME_BYTES;
	answer->receive_ring = answer->fill_ring = RECEIVE_RING;
	answer->transmit_ring = answer->completion_ring = TRANSMIT_RING;
	return 0;
}

void program_end(struct service *service, struct client *client)
{
	struct program *program = client->program;
	struct traffic traffic;

	BW_EVENT(program_ended, client->who.pid);
	ports_free(service, program->path.number);
	program_traffic(service, program, &traffic);
	traffic_add(&service->ended, &traffic);
	if (program->page >= 0) {
		statistics_read(program, &service->page); /* as it has left it */
		close(program->page);
	}
	statistics_add(service->ended_counts, program->counts);
	service->programs_ended++;
	service->left[program->path.number % PATH_SLOTS] = program;
	service->left_count++;
	client->program = NULL;
}

static void remove_left(struct service *service, uint32_t slot)
{
	struct program *program = service->left[slot];

	service->left[slot] = NULL;
	service->left_count--;
	if (program->path.card_index)
		netlink_delete_interface(service->netlink, program->path.card_index);
	guard_tell(service->guard, slot, 0);
	path_drop(&service->path, &program->path);
	if (program->socket >= 0)
		close(program->socket);
	free(program);
}

bool programs_remove_one(struct service *service)
{
	for (uint32_t slot = 0; slot < PATH_SLOTS; slot++) {
		if (service->left[slot]) {
			remove_left(service, slot);
			return true;
		}
	}
	return false;
}

void program_traffic(const struct service *service, const struct program *program, struct traffic *traffic)
{
	struct xdp_statistics rings = { 0 };
	socklen_t size = sizeof(rings);
	struct path_counts counts = { { 0 } };

	*traffic = (struct traffic){ .ring_full = 0 };
	if (program->path.egress_link < 0) /* it has not come so far; the counts are of the one before */
		return;
	path_counts(&service->path, program->path.number, &counts);
	memcpy(traffic->path, counts.of, sizeof(traffic->path));
	if (getsockopt(program->socket, SOL_XDP, XDP_STATISTICS, &rings, &size) == 0) {
		traffic->ring_full = rings.rx_ring_full;
		traffic->fill_ring_empty = rings.rx_dropped;
		traffic->bad_descriptor = rings.tx_invalid_descs;
	}
}

void traffic_add(struct traffic *sum, const struct traffic *more)
{
	for (int i = 0; i < PATH_COUNTS; i++)
		sum->path[i] += more->path[i];
	sum->ring_full += more->ring_full;
	sum->fill_ring_empty += more->fill_ring_empty;
	sum->bad_descriptor += more->bad_descriptor;
}

void programs_set_mtu(const struct service *service)
{
	for (int i = 0; i < CLIENTS_MAX; i++) {
		const struct program *program = service->clients[i].program;

		if (!program)
			continue;
		netlink_set_mtu(service->netlink, program->path.card_index, service->interface.mtu_bytes);
		netlink_set_mtu(service->own_netlink, program->own_index, service->interface.mtu_bytes);
	}
}
