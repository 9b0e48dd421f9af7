/* SPDX-License-Identifier: Apache-2.0 */
/* The packet path of one interface, in the kernel. All of it ends with the process that holds it, also when it is killed. */
#ifndef BW_PORT_PATH_H
#define BW_PORT_PATH_H

#include <stdbool.h>
#include <stdint.h>

#include "path/path.h"

struct path {
	int interface, addresses, owners, numbers, slots, counts, veths, fragments_in, fragments_out; /* maps */
	int ingress, egress, link;
	int processors; /* counters of one each */
	bool native;    /* in the driver; else in the kernel's generic path */
};

/* A program's part of it; descriptors are -1 where there is none yet. */
struct path_program {
	uint32_t number;
	int card_index; /* of the veth's end beside the interface */
	int sockets, deliver, deliver_link, egress_link;
};

/**
 * Load the programs, and attach the one that takes frames in.
 *
 * @param interface  what the path is of; changes of it: path_set_interface
 * @param log        what the kernel's checker says where it refuses a program; BPF_LOG_BYTES
 * @return 0 (path_close), or -errno: -EPERM, -EBUSY (another XDP program is there), -EINVAL with a log
 */
int path_open(struct path *path, const struct path_interface *interface, bool generic, char *log);
void path_close(struct path *path);

int path_set_interface(const struct path *path, const struct path_interface *interface);
/** Say which addresses are the interface's: those before, and those now. @return 0 or -errno */
int path_set_addresses(const struct path *path, const struct path_address *before, int before_count,
		       const struct path_address *now, int count);

/** Load what delivers to one program, and attach it to an interface in this thread's namespace. @return 0 (path_drop) or -errno */
int path_deliver(struct path_program *program, int program_index, int socket, char *log);

/** Let a program that has `deliver` send and receive. @return 0 or -errno */
int path_connect(const struct path *path, struct path_program *program);
/** Take back all that a program has but its ports. */
void path_drop(const struct path *path, struct path_program *program);

/** Let a program have a port, or, as number 0, nobody. @return 0 or -errno */
int path_give(const struct path *path, uint8_t protocol, uint16_t port, const struct path_owner *owner);

void path_counts(const struct path *path, uint32_t number, struct path_counts *counts);

#endif
