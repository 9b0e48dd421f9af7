/* SPDX-License-Identifier: Apache-2.0 */
#include "bpf/port_bpf.h"

#include <errno.h>
#include <linux/if_link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { BUSY_LOOK_NS = 20 * 1000 * 1000, BUSY_LOOKS = 100 };

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

int bpf_make_map(enum bpf_map_type type, const char *name, uint32_t key_bytes, uint32_t value_bytes, uint32_t entries, int inner)
{
	union bpf_attr attributes = {
		.map_type = type, .key_size = key_bytes, .value_size = value_bytes, .max_entries = entries,
		.inner_map_fd = inner > 0 ? (uint32_t)inner : 0,
	};

	strncpy(attributes.map_name, name, sizeof(attributes.map_name) - 1);
	return bpf(BPF_MAP_CREATE, &attributes);
}

int bpf_map_update(int map, const void *key, const void *value, uint64_t flags)
{
	union bpf_attr attributes = {
		.map_fd = (uint32_t)map, .key = pointer(key), .value = pointer(value), .flags = flags,
	};

	return bpf(BPF_MAP_UPDATE_ELEM, &attributes);
}

int bpf_map_look_up(int map, const void *key, void *value)
{
	union bpf_attr attributes = { .map_fd = (uint32_t)map, .key = pointer(key), .value = pointer(value) };

	return bpf(BPF_MAP_LOOKUP_ELEM, &attributes);
}

int bpf_map_delete(int map, const void *key)
{
	union bpf_attr attributes = { .map_fd = (uint32_t)map, .key = pointer(key) };

	return bpf(BPF_MAP_DELETE_ELEM, &attributes);
}

int bpf_map_delete_all(int map, const void *keys, uint32_t count)
{
	union bpf_attr attributes = { .batch = { .map_fd = (uint32_t)map, .keys = pointer(keys), .count = count } };

	return bpf(BPF_MAP_DELETE_BATCH, &attributes);
}

static int map_named(const struct bpf_named_map *maps, const char *name)
{
	for (; maps->name; maps++) {
		if (!strcmp(maps->name, name))
			return maps->map;
	}
	return -1;
}

/* Load instructions whose maps are in their places. */
static int load(const struct bpf_program *program, uint32_t attach_type, const struct bpf_insn *instructions, char *log)
{
	union bpf_attr attributes = {
		.prog_type = attach_type == BPF_XDP ? BPF_PROG_TYPE_XDP : BPF_PROG_TYPE_SCHED_CLS,
		.insns = pointer(instructions), .insn_cnt = (uint32_t)program->instruction_count,
		.license = pointer("Apache-2.0"), .expected_attach_type = attach_type == BPF_XDP ? BPF_XDP : 0,
		.prog_flags = attach_type == BPF_XDP ? BPF_F_XDP_HAS_FRAGS : 0, /* a frame over a page comes in several buffers */
	};
	int loaded;

	strncpy(attributes.prog_name, program->name, sizeof(attributes.prog_name) - 1);
	loaded = bpf(BPF_PROG_LOAD, &attributes);
	if (loaded >= 0)
		return loaded;
	attributes.log_buf = pointer(log);
	attributes.log_size = BPF_LOG_BYTES;
	attributes.log_level = 1;
	bpf(BPF_PROG_LOAD, &attributes);
	return loaded;
}

int bpf_load(const struct bpf_program *program, uint32_t attach_type, const struct bpf_named_map *maps, char *log)
{
	struct bpf_insn *instructions = malloc(program->instruction_count * sizeof(*instructions));
	int loaded;

	log[0] = '\0';
	if (!instructions)
		return -ENOMEM;
	memcpy(instructions, program->instructions, program->instruction_count * sizeof(*instructions));
	for (size_t i = 0; i < program->use_count; i++) {
		struct bpf_insn *instruction = &instructions[program->uses[i].instruction];

		instruction->src_reg = BPF_PSEUDO_MAP_FD;
		instruction->imm = map_named(maps, program->uses[i].map);
	}
	loaded = load(program, attach_type, instructions, log);
	free(instructions);
	return loaded;
}

int bpf_attach(int program, int interface_index, uint32_t attach_type, uint32_t flags)
{
	union bpf_attr attributes = {
		.link_create = { .prog_fd = (uint32_t)program, .target_ifindex = (uint32_t)interface_index,
				 .attach_type = attach_type, .flags = flags },
	};

	return bpf(BPF_LINK_CREATE, &attributes);
}

/* A program of a process that was killed is taken off a moment after its end. */
static int attach_once_free(int program, int interface_index, uint32_t flags)
{
	const struct timespec look = { .tv_nsec = BUSY_LOOK_NS };
	int link = bpf_attach(program, interface_index, BPF_XDP, flags);

	for (int looks = 0; link == -EBUSY && looks < BUSY_LOOKS; looks++) {
		nanosleep(&look, NULL);
		link = bpf_attach(program, interface_index, BPF_XDP, flags);
	}
	return link;
}

int bpf_attach_xdp(int program, int interface_index, bool *native)
{
	int link = *native ? attach_once_free(program, interface_index, XDP_FLAGS_DRV_MODE) : -EOPNOTSUPP;

	if (link == -EOPNOTSUPP || link == -EINVAL || link == -ERANGE) {
		*native = false;
		link = attach_once_free(program, interface_index, XDP_FLAGS_SKB_MODE);
	}
	return link;
}

int bpf_possible_processors(void)
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
	return last >= 0 && last < BPF_PROCESSORS_MAX ? last + 1 : -EINVAL;
}
