/* SPDX-License-Identifier: Apache-2.0 */
#include "port_xdp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "bpf/port_bpf.h"
#include "rtdip_xdp.h"

int rtdip_kernel_ring(uint32_t bytes)
{
	return bpf_make_map(BPF_MAP_TYPE_RINGBUF, "rtdip_ring", 0, 0, bytes, 0);
}

static int make_maps(struct rtdip_kernel *kernel)
{
	int like = rtdip_kernel_ring((uint32_t)getpagesize()); /* what the rings of ports are like */

	if (like < 0)
		return like;
	kernel->ports = bpf_make_map(BPF_MAP_TYPE_HASH_OF_MAPS, "rtdip_ports", sizeof(uint16_t), sizeof(uint32_t),
				     RTDIP_PORTS_MAX, like);
	close(like);
	kernel->port_counts = bpf_make_map(BPF_MAP_TYPE_HASH, "rtdip_port_cnt", sizeof(uint16_t),
					   sizeof(struct rtdip_port_counts), RTDIP_PORTS_MAX, 0);
	kernel->counts = bpf_make_map(BPF_MAP_TYPE_PERCPU_ARRAY, "rtdip_counts", sizeof(uint32_t), sizeof(uint64_t),
				      RTDIP_COUNTS, 0);
	kernel->address = bpf_make_map(BPF_MAP_TYPE_ARRAY, "rtdip_address", sizeof(uint32_t), sizeof(uint64_t), 1, 0);
	for (const int *map = &kernel->ports; map <= &kernel->address; map++) {
		if (*map < 0)
			return *map;
	}
	return 0;
}

static int load(struct rtdip_kernel *kernel, char *log)
{
	const struct bpf_named_map maps[] = {
		{ "ports", kernel->ports }, { "port_counts", kernel->port_counts }, { "counts", kernel->counts },
		{ "address", kernel->address }, { NULL, -1 },
	};

	return bpf_load(&rtdip_xdp, BPF_XDP, maps, log);
}

int rtdip_kernel_open(struct rtdip_kernel *kernel, int interface_index, const uint8_t mac[RTDIP_MAC_BYTES], bool generic,
		      char *log)
{
	const uint32_t first = 0;
	uint64_t address = 0;
	int err;

	*kernel = (struct rtdip_kernel){ -1, -1, -1, -1, -1, -1, bpf_possible_processors(), !generic };
	memcpy(&address, mac, RTDIP_MAC_BYTES);
	err = kernel->processors < 0 ? kernel->processors : make_maps(kernel);
	if (!err)
		err = bpf_map_update(kernel->address, &first, &address, BPF_ANY);
	if (!err) {
		kernel->program = load(kernel, log);
		err = kernel->program < 0 ? kernel->program : 0;
	}
	if (!err) {
		kernel->link = bpf_attach_xdp(kernel->program, interface_index, &kernel->native);
		err = kernel->link < 0 ? kernel->link : 0;
	}
	if (err)
		rtdip_kernel_close(kernel);
	return err;
}

void rtdip_kernel_close(struct rtdip_kernel *kernel)
{
	const int all[] = {
		kernel->link, kernel->program, kernel->address, kernel->counts, kernel->port_counts, kernel->ports,
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (all[i] >= 0)
			close(all[i]);
	}
	kernel->link = kernel->program = -1;
	kernel->ports = kernel->port_counts = kernel->counts = kernel->address = -1;
}

int rtdip_kernel_give(struct rtdip_kernel *kernel, uint16_t port, int ring)
{
	const struct rtdip_port_counts none = { 0 };
	const uint16_t key = htons(port);
	int err = bpf_map_update(kernel->port_counts, &key, &none, BPF_NOEXIST);

	if (err)
		return err;
	err = bpf_map_update(kernel->ports, &key, &ring, BPF_NOEXIST);
	if (err)
		bpf_map_delete(kernel->port_counts, &key);
	return err;
}

void rtdip_kernel_take(struct rtdip_kernel *kernel, const uint16_t *ports, uint32_t count)
{
	uint16_t keys[RTDIP_TAKE_MAX] = { 0 };
	bool one_by_one;

	for (uint32_t i = 0; i < count; i++)
		keys[i] = htons(ports[i]);
	one_by_one = bpf_map_delete_all(kernel->ports, keys, count) != 0; /* before Linux 5.19 */
	for (uint32_t i = 0; i < count; i++) {
		if (one_by_one)
			bpf_map_delete(kernel->ports, &keys[i]);
		bpf_map_delete(kernel->port_counts, &keys[i]);
	}
}

void rtdip_kernel_counts(const struct rtdip_kernel *kernel, uint64_t counts[RTDIP_COUNTS])
{
	uint64_t of_processors[BPF_PROCESSORS_MAX];

	for (uint32_t what = 0; what < RTDIP_COUNTS; what++) {
		counts[what] = 0;
		if (bpf_map_look_up(kernel->counts, &what, of_processors) != 0)
			continue;
		for (int i = 0; i < kernel->processors; i++)
			counts[what] += of_processors[i];
	}
}

int rtdip_kernel_port_counts(const struct rtdip_kernel *kernel, uint16_t port, struct rtdip_port_counts *counts)
{
	const uint16_t key = htons(port);

	return bpf_map_look_up(kernel->port_counts, &key, counts);
}
