/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs and maps of BPF without a library: bpf_object.py has made tables of what clang has compiled. What is made here ends
 * with the last descriptor of it, a program's attachment, too: it is a link.
 */
#ifndef BW_PORT_BPF_H
#define BW_PORT_BPF_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An attach_type of Linux 6.6 that older headers do not have. */
#define BPF_ATTACH_TCX_INGRESS 46

enum { BPF_LOG_BYTES = 1 << 16, BPF_PROCESSORS_MAX = 1024 };

/* An instruction that refers to a map. */
struct bpf_map_use {
	unsigned int instruction;
	const char *map;
};

struct bpf_program {
	const char *name;
	const uint64_t *instructions;
	size_t instruction_count;
	const struct bpf_map_use *uses;
	size_t use_count;
};

/* A map by the name that programs know it by. */
struct bpf_named_map {
	const char *name;
	int map;
};

/**
 * Make a map.
 *
 * @param name   what tools show, cut to 15 characters
 * @param inner  of a map of maps: one like those in it; else 0
 * @return its descriptor, or -errno
 */
int bpf_make_map(enum bpf_map_type type, const char *name, uint32_t key_bytes, uint32_t value_bytes, uint32_t entries, int inner);

/** @return 0 or -errno */
int bpf_map_update(int map, const void *key, const void *value, uint64_t flags);
int bpf_map_look_up(int map, const void *key, void *value);
int bpf_map_delete(int map, const void *key);
/** Delete entries, in one call. @return 0; -errno: some may be left, and of all where this kernel cannot */
int bpf_map_delete_all(int map, const void *keys, uint32_t count);

/**
 * Load a program.
 *
 * @param attach_type  BPF_XDP: its frames may come in several buffers; else that of BPF_PROG_TYPE_SCHED_CLS
 * @param maps         those that it may refer to; a name of NULL ends them
 * @param log          what the kernel's checker says where it refuses the program, else empty; BPF_LOG_BYTES
 * @return its descriptor, or -errno
 */
int bpf_load(const struct bpf_program *program, uint32_t attach_type, const struct bpf_named_map *maps, char *log);

/** Attach a program to an interface for as long as the link is open. @param flags of XDP: XDP_FLAGS_… @return the link or -errno */
int bpf_attach(int program, int interface_index, uint32_t attach_type, uint32_t flags);

/**
 * Attach a program of XDP in the driver where that can, else in the kernel's generic path, which *native says. It waits up to 2 s for
 * another one to go, as that of a process that was killed does. @return as bpf_attach
 */
int bpf_attach_xdp(int program, int interface_index, bool *native);

/** How many values an entry of a map has that counts for each processor. @return that, or -errno */
int bpf_possible_processors(void);

#endif
