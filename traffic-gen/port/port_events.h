/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The port layer of libbwevents and bw-events: files in shared memory, who this is, the programs that record. As in port.h, functions
 * return 0 or -errno and never print. Those marked so may be called in signal handlers.
 */
#ifndef BW_PORT_EVENTS_H
#define BW_PORT_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bw_point;

/** The folder that the environment names, BW_EVENTS; NULL: none, or this program runs with more rights than who started it. */
const char *port_events_folder(void);
/** Say on stderr that this program records nothing, and why: the one sentence that the library prints. */
void port_events_complain(const char *folder, int err);
/** Name of the file of the running program, without its folder. @return 0 or -errno */
int port_events_program(char *name, size_t size_bytes);
uint64_t port_events_pid(void);
/** Number of this thread in the system. Safe in signal handlers. */
uint32_t port_events_thread(void);
/** Number of the processor that this thread is on. Safe in signal handlers. */
uint32_t port_events_cpu(void);
/** How many processors this machine may have. */
uint32_t port_events_cpus(void);
/** The system's raw monotonic clock in ns, where there is no counter. Safe in signal handlers. */
uint64_t port_events_clock_ns(void);
/** The points of this program or library. */
void port_events_points(struct bw_point **first_out, struct bw_point **end_out);

struct port_events_file {
	void *address;
	size_t size_bytes;
	intptr_t handle; /* internal: who has it open holds a lock that others see; -1: none */
};

enum { PORT_EVENTS_PATH_BYTES = 512 };

/**
 * Make a file with all its room, mapped, under a name that nobody looks at; whoever maps it holds it until it ends.
 *
 * @param path  receives that name
 * @return 0; -ENOSPC; or -errno
 */
int port_events_create(const char *folder, size_t size_bytes, struct port_events_file *file, char path[PORT_EVENTS_PATH_BYTES]);
/** Give the file its name. @return 0; -EEXIST; or -errno (it is removed then) */
int port_events_publish(const char *folder, const char *name, const char path[PORT_EVENTS_PATH_BYTES]);
/** Map an existing file, readable and writable. @return 0 or -errno (-EPERM: no regular file) */
int port_events_open(const char *path, struct port_events_file *file);
void port_events_close(struct port_events_file *file);
/** Close a file that was opened, and stay mapped: a program has no descriptor more for it. */
void port_events_keep_map(struct port_events_file *file);
/** @return true while the process that made this file, or a child of it, has it mapped @param pid  of that process; 0: not known */
bool port_events_is_held(const struct port_events_file *file, uint64_t pid);
/** Hold a file that was opened, as its maker does. @return 0; -EBUSY: another one does; or -errno */
int port_events_hold(const struct port_events_file *file);
/** Wait until no other process changes this file; until it is closed, none does. Holding it is another matter. @return 0 or -errno */
int port_events_change(const struct port_events_file *file);

/* Receives the name of a file in a folder. Returns 0: go on. */
typedef int port_events_name(void *sink, const char *name);
/** Tell all names in a folder, in no order. @return 0, what `name` returned, or -errno */
int port_events_list(const char *folder, port_events_name *name, void *sink);
int port_events_remove(const char *path);
/** Remove a file that is open, and close it; it is held until it has gone. */
void port_events_close_removed(struct port_events_file *file, const char *path);
int port_events_remove_folder(const char *path);
/** @return true if it is a folder, itself and not by a link, and of the user who asks */
bool port_events_is_own_folder(const char *path);
/** Make a folder, unless it is there and can be written into. @param absolute  receives its path from the root @return 0 or -errno */
int port_events_output(const char *path, char absolute[PORT_EVENTS_PATH_BYTES]);
/** Make a folder of this user alone in the machine's memory. @return 0 or -errno */
int port_events_make_folder(char path[PORT_EVENTS_PATH_BYTES]);
/** Folder of the folders that port_events_make_folder makes (BW_EVENTS_MEMORY, or the system's), and how their names begin. */
void port_events_places(const char **folder_out, const char **prefix_out);

/** Start a program with BW_EVENTS set. @param argv  ended by NULL @return 0 or -errno (-ENOENT: there is none) */
int port_events_start(const char *folder, char **argv, int64_t *pid_out);
/** @return 1: it has ended, with its exit code (128 + signal); 0: it runs; or -errno */
int port_events_ended(int64_t pid, int *code_out);
/** Pass SIGTERM on to a program that was started. */
void port_events_terminate(int64_t pid);

#endif
