/* SPDX-License-Identifier: Apache-2.0 */
#include "path/port_path.h"

#include <linux/if_link.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "bpf/port_bpf.h"
#include "userstack_path.h"

static const struct path_program no_program = { 0, 0, -1, -1, -1, -1 };

static int make_maps(struct path *path)
{
	enum { WORD = sizeof(uint32_t), FRAGMENT = sizeof(struct path_fragment) };

	path->interface = bpf_make_map(BPF_MAP_TYPE_ARRAY, "stackd_interf", WORD, sizeof(struct path_interface), 1, 0);
	path->addresses = bpf_make_map(BPF_MAP_TYPE_HASH, "stackd_address", sizeof(struct path_address), WORD, 2 * PATH_ADDRESSES, 0);
	path->owners = bpf_make_map(BPF_MAP_TYPE_ARRAY, "stackd_owners", WORD, sizeof(struct path_owner), 2 * PATH_PORTS, 0);
	path->numbers = bpf_make_map(BPF_MAP_TYPE_ARRAY, "stackd_numbers", WORD, WORD, PATH_SLOTS, 0);
	path->slots = bpf_make_map(BPF_MAP_TYPE_HASH, "stackd_slots", WORD, WORD, PATH_SLOTS, 0);
	path->counts = bpf_make_map(BPF_MAP_TYPE_PERCPU_ARRAY, "stackd_counts", WORD, sizeof(struct path_counts), PATH_SLOTS, 0);
	path->veths = bpf_make_map(BPF_MAP_TYPE_DEVMAP, "stackd_veths", WORD, WORD, PATH_SLOTS, 0);
	path->fragments_in = bpf_make_map(BPF_MAP_TYPE_LRU_HASH, "stackd_frag_in", FRAGMENT, WORD, PATH_FRAGMENTS, 0);
	path->fragments_out = bpf_make_map(BPF_MAP_TYPE_LRU_HASH, "stackd_frag_out", FRAGMENT, WORD, PATH_FRAGMENTS, 0);
	for (const int *map = &path->interface; map <= &path->fragments_out; map++) {
		if (*map < 0)
			return *map;
	}
	return 0;
}

static int load(struct path *path, char *log)
{
	const struct bpf_named_map maps[] = {
		{ "interface", path->interface }, { "addresses", path->addresses }, { "owners", path->owners },
		{ "numbers", path->numbers }, { "slots", path->slots }, { "counts", path->counts }, { "veths", path->veths },
		{ "fragments_in", path->fragments_in }, { "fragments_out", path->fragments_out }, { NULL, -1 },
	};

	path->ingress = bpf_load(&stackd_ingress, BPF_XDP, maps, log);
	if (path->ingress < 0)
		return path->ingress;
	path->egress = bpf_load(&stackd_egress, BPF_ATTACH_TCX_INGRESS, maps, log);
	return path->egress < 0 ? path->egress : 0;
}

int path_open(struct path *path, const struct path_interface *interface, bool generic, char *log)
{
	int err;

	*path = (struct path){ -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, bpf_possible_processors(), !generic };
	err = path->processors < 0 ? path->processors : make_maps(path);
	if (!err)
		err = path_set_interface(path, interface);
	if (!err)
		err = load(path, log);
	if (!err) {
		path->link = bpf_attach_xdp(path->ingress, (int)interface->index, &path->native);
		err = path->link < 0 ? path->link : 0;
	}
	if (err)
		path_close(path);
	return err;
}

static void close_all(int *first, const int *last)
{
	for (; first <= last; first++) {
		if (*first >= 0)
			close(*first);
		*first = -1;
	}
}

void path_close(struct path *path)
{
	close_all(&path->link, &path->link); /* before all that it needs */
	close_all(&path->interface, &path->egress);
}

int path_set_interface(const struct path *path, const struct path_interface *interface)
{
	const uint32_t first = 0;

	return bpf_map_update(path->interface, &first, interface, BPF_ANY);
}

static bool is_among(const struct path_address *address, const struct path_address *all, int count)
{
	for (int i = 0; i < count; i++) {
		if (!memcmp(address, &all[i], sizeof(*address)))
			return true;
	}
	return false;
}

int path_set_addresses(const struct path *path, const struct path_address *before, int before_count,
		       const struct path_address *now, int count)
{
	const uint32_t yes = 1;
	int err = 0;

	/* What stays is in the map all the time: a packet that the kernel's stack got meanwhile would be answered by a RST. */
	for (int i = 0; i < before_count; i++) {
		if (!is_among(&before[i], now, count))
			bpf_map_delete(path->addresses, &before[i]);
	}
	for (int i = 0; i < count && !err; i++) {
		if (!is_among(&now[i], before, before_count))
			err = bpf_map_update(path->addresses, &now[i], &yes, BPF_ANY);
	}
	return err;
}

int path_deliver(struct path_program *program, int program_index, int socket, char *log)
{
	struct bpf_named_map maps[] = { { "sockets", -1 }, { NULL, -1 } };
	const uint32_t first = 0;
	int err;

	program->sockets = bpf_make_map(BPF_MAP_TYPE_XSKMAP, "stackd_socket", sizeof(uint32_t), sizeof(uint32_t), 1, 0);
	err = program->sockets < 0 ? program->sockets : bpf_map_update(program->sockets, &first, &socket, BPF_ANY);
	if (err)
		return err;
	maps[0].map = program->sockets;
	program->deliver = bpf_load(&stackd_deliver, BPF_XDP, maps, log);
	if (program->deliver < 0)
		return program->deliver;
	program->deliver_link = bpf_attach(program->deliver, program_index, BPF_XDP, XDP_FLAGS_DRV_MODE);
	return program->deliver_link < 0 ? program->deliver_link : 0;
}

int path_connect(const struct path *path, struct path_program *program)
{
	static const struct path_counts none[BPF_PROCESSORS_MAX];
	const uint32_t slot = program->number % PATH_SLOTS, card = (uint32_t)program->card_index;
	int err = bpf_map_update(path->counts, &slot, none, BPF_ANY);

	if (!err)
		err = bpf_map_update(path->slots, &card, &program->number, BPF_ANY);
	if (!err)
		err = bpf_map_update(path->veths, &slot, &card, BPF_ANY);
	if (!err)
		err = bpf_map_update(path->numbers, &slot, &program->number, BPF_ANY);
	if (err)
		return err;
	program->egress_link = bpf_attach(path->egress, program->card_index, BPF_ATTACH_TCX_INGRESS, 0);
	return program->egress_link < 0 ? program->egress_link : 0;
}

void path_drop(const struct path *path, struct path_program *program)
{
	const uint32_t slot = program->number % PATH_SLOTS, card = (uint32_t)program->card_index, nobody = 0;

	bpf_map_update(path->numbers, &slot, &nobody, BPF_ANY);
	bpf_map_delete(path->veths, &slot);
	bpf_map_delete(path->slots, &card);
	close_all(&program->sockets, &program->egress_link);
	*program = no_program;
}

int path_give(const struct path *path, uint8_t protocol, uint16_t port, const struct path_owner *owner)
{
	const uint32_t key = path_port_key(protocol, port);

	return bpf_map_update(path->owners, &key, owner, BPF_ANY);
}

void path_counts(const struct path *path, uint32_t number, struct path_counts *counts)
{
	static struct path_counts of_processors[BPF_PROCESSORS_MAX];
	const uint32_t slot = number % PATH_SLOTS;

	*counts = (struct path_counts){ { 0 } };
	if (bpf_map_look_up(path->counts, &slot, of_processors) != 0)
		return;
	for (int i = 0; i < path->processors; i++) {
		for (int what = 0; what < PATH_COUNTS; what++)
			counts->of[what] += of_processors[i].of[what];
	}
}
