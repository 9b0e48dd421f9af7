/* SPDX-License-Identifier: Apache-2.0 */
#include "port_xdp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/if_link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rtdip_xdp.h"

enum { INSTRUCTIONS = sizeof(rtdip_xdp_instructions) / sizeof(rtdip_xdp_instructions[0]), PROCESSORS_MAX = 1024 };

/* Return a descriptor or 0, or -errno. */
static int bpf(enum bpf_cmd command, union bpf_attr *attributes)
{
	long result = syscall(SYS_bpf, command, attributes, sizeof(*attributes));

	return result < 0 ? -errno : (int)result;
}

static uint64_t pointer(const void *address)
{
	return (uint64_t)(uintptr_t)address;
}

static int make_map(enum bpf_map_type type, const char *name, uint32_t key_bytes, uint32_t value_bytes, uint32_t entries,
		    int inner)
{
	union bpf_attr attributes = {
		.map_type = type, .key_size = key_bytes, .value_size = value_bytes, .max_entries = entries,
		.inner_map_fd = inner > 0 ? (uint32_t)inner : 0,
	};

	strncpy(attributes.map_name, name, sizeof(attributes.map_name) - 1);
	return bpf(BPF_MAP_CREATE, &attributes);
}

static int update(int map, const void *key, const void *value, uint64_t flags)
{
	union bpf_attr attributes = {
		.map_fd = (uint32_t)map, .key = pointer(key), .value = pointer(value), .flags = flags,
	};

	return bpf(BPF_MAP_UPDATE_ELEM, &attributes);
}

static int look_up(int map, const void *key, void *value)
{
	union bpf_attr attributes = { .map_fd = (uint32_t)map, .key = pointer(key), .value = pointer(value) };

	return bpf(BPF_MAP_LOOKUP_ELEM, &attributes);
}

static void take_out(int map, const void *key)
{
	union bpf_attr attributes = { .map_fd = (uint32_t)map, .key = pointer(key) };

	bpf(BPF_MAP_DELETE_ELEM, &attributes);
}

int rtdip_kernel_ring(uint32_t bytes)
{
	return make_map(BPF_MAP_TYPE_RINGBUF, "rtdip_ring", 0, 0, bytes, 0);
}

static int make_maps(struct rtdip_kernel *kernel)
{
	int like = rtdip_kernel_ring((uint32_t)getpagesize()); /* what the rings of ports are like */

	if (like < 0)
		return like;
	kernel->ports = make_map(BPF_MAP_TYPE_HASH_OF_MAPS, "rtdip_ports", sizeof(uint16_t), sizeof(uint32_t),
				 RTDIP_PORTS_MAX, like);
	close(like);
	kernel->port_counts = make_map(BPF_MAP_TYPE_HASH, "rtdip_port_cnt", sizeof(uint16_t),
				       sizeof(struct rtdip_port_counts), RTDIP_PORTS_MAX, 0);
	kernel->counts = make_map(BPF_MAP_TYPE_PERCPU_ARRAY, "rtdip_counts", sizeof(uint32_t), sizeof(uint64_t),
				  RTDIP_COUNTS, 0);
	kernel->address = make_map(BPF_MAP_TYPE_ARRAY, "rtdip_address", sizeof(uint32_t), sizeof(uint64_t), 1, 0);
	for (const int *map = &kernel->ports; map <= &kernel->address; map++) {
		if (*map < 0)
			return *map;
	}
	return 0;
}

static int map_named(const struct rtdip_kernel *kernel, const char *name)
{
	const struct { const char *name; int map; } all[] = {
		{ "ports", kernel->ports }, { "port_counts", kernel->port_counts }, { "counts", kernel->counts },
		{ "address", kernel->address },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (!strcmp(all[i].name, name))
			return all[i].map;
	}
	return -1;
}

/* Put the maps' descriptors where the program refers to them, and load it. */
static int load(struct rtdip_kernel *kernel, char *log)
{
	struct bpf_insn instructions[INSTRUCTIONS];
	union bpf_attr attributes = {
		.prog_type = BPF_PROG_TYPE_XDP, .insns = pointer(instructions), .insn_cnt = INSTRUCTIONS,
		.license = pointer("Apache-2.0"), .prog_name = "rtdip", .expected_attach_type = BPF_XDP,
		.prog_flags = BPF_F_XDP_HAS_FRAGS, /* a frame over a page comes in several buffers */
	};
	int program;

	memcpy(instructions, rtdip_xdp_instructions, sizeof(instructions));
	for (size_t i = 0; i < sizeof(rtdip_xdp_maps) / sizeof(rtdip_xdp_maps[0]); i++) {
		struct bpf_insn *instruction = &instructions[rtdip_xdp_maps[i].instruction];

		instruction->src_reg = BPF_PSEUDO_MAP_FD;
		instruction->imm = map_named(kernel, rtdip_xdp_maps[i].map);
	}
	log[0] = '\0';
	program = bpf(BPF_PROG_LOAD, &attributes);
	if (program >= 0)
		return program;
	attributes.log_buf = pointer(log);
	attributes.log_size = RTDIP_LOG_BYTES;
	attributes.log_level = 1;
	bpf(BPF_PROG_LOAD, &attributes);
	return program;
}

static int attach(int program, int interface_index, uint32_t mode)
{
	union bpf_attr attributes = {
		.link_create = { .prog_fd = (uint32_t)program, .target_ifindex = (uint32_t)interface_index,
				 .attach_type = BPF_XDP, .flags = mode },
	};

	return bpf(BPF_LINK_CREATE, &attributes);
}

/* How many values a map has that counts for each processor. */
static int possible_processors(void)
{
	FILE *file = fopen("/sys/devices/system/cpu/possible", "r");
	int first = 0, last = -1;

	if (!file)
		return -errno;
	while (fscanf(file, "%d", &first) == 1) { /* "0-3,8-11": the last number */
		last = first > last ? first : last;
		if (fgetc(file) == EOF)
			break;
	}
	fclose(file);
	return last >= 0 && last < PROCESSORS_MAX ? last + 1 : -EINVAL;
}

int rtdip_kernel_open(struct rtdip_kernel *kernel, int interface_index, const uint8_t mac[RTDIP_MAC_BYTES], bool generic,
		      char *log)
{
	const uint32_t first = 0;
	uint64_t address = 0;
	int err;

	*kernel = (struct rtdip_kernel){ -1, -1, -1, -1, -1, -1, possible_processors(), !generic };
	memcpy(&address, mac, RTDIP_MAC_BYTES);
	err = kernel->processors < 0 ? kernel->processors : make_maps(kernel);
	if (!err)
		err = update(kernel->address, &first, &address, BPF_ANY);
	if (!err) {
		kernel->program = load(kernel, log);
		err = kernel->program < 0 ? kernel->program : 0;
	}
	if (!err) {
		kernel->link = generic ? -EOPNOTSUPP : attach(kernel->program, interface_index, XDP_FLAGS_DRV_MODE);
		if (kernel->link == -EOPNOTSUPP || kernel->link == -EINVAL || kernel->link == -ERANGE) {
			kernel->native = false;
			kernel->link = attach(kernel->program, interface_index, XDP_FLAGS_SKB_MODE);
		}
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
	int err = update(kernel->port_counts, &key, &none, BPF_NOEXIST);

	if (err)
		return err;
	err = update(kernel->ports, &key, &ring, BPF_NOEXIST);
	if (err)
		take_out(kernel->port_counts, &key);
	return err;
}

void rtdip_kernel_take(struct rtdip_kernel *kernel, uint16_t port)
{
	const uint16_t key = htons(port);

	take_out(kernel->ports, &key);
	take_out(kernel->port_counts, &key);
}

void rtdip_kernel_counts(const struct rtdip_kernel *kernel, uint64_t counts[RTDIP_COUNTS])
{
	uint64_t of_processors[PROCESSORS_MAX];

	for (uint32_t what = 0; what < RTDIP_COUNTS; what++) {
		counts[what] = 0;
		if (look_up(kernel->counts, &what, of_processors) != 0)
			continue;
		for (int i = 0; i < kernel->processors; i++)
			counts[what] += of_processors[i];
	}
}

int rtdip_kernel_port_counts(const struct rtdip_kernel *kernel, uint16_t port, struct rtdip_port_counts *counts)
{
	const uint16_t key = htons(port);

	return look_up(kernel->port_counts, &key, counts);
}
