/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Port layer: a program that is started, watched and ended with all that it has started, whatever became of its parents.
 * Linux alone.
 */
#ifndef BW_PORT_SUPERVISE_H
#define BW_PORT_SUPERVISE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct supervised {
	int signals;     /* of this process */
	int in;          /* to the program's stdin; -1: it has none */
	int out, err;    /* its stdout and stderr; -1: at their end */
	bool commanded;  /* whether stdin of this process is still open */
	int64_t pid;     /* 0: not started */
	bool has_ended;
	int exit_code;   /* of an end by itself */
	int end_signal;  /* that ended it; 0: none */
	bool by_request; /* it was ended by SIGTERM, or has an exit code that says so */
};

enum supervise_event {
	SUPERVISE_TIME,    /* the deadline has passed */
	SUPERVISE_COMMAND, /* there is something to read on stdin, its end perhaps */
	SUPERVISE_OUT,     /* on the program's stdout */
	SUPERVISE_ERR,     /* on its stderr */
	SUPERVISE_ENDED,   /* the program has ended: see exit_code, end_signal */
	SUPERVISE_STOP,    /* this process is asked to end */
};

/** Take this process's signals over, and the orphans of what it starts. @return 0 or -errno; port_supervise_close is allowed in either case */
int port_supervise_open(struct supervised *supervised);
/** End all that was started, and was left by it. */
void port_supervise_close(struct supervised *supervised);

/**
 * Start the program in a session of its own, in this process's folder. It ends with this process.
 *
 * @param takes_commands  with a stdin; else it reads the end of a file at once
 * @return 0, or -errno: -ENOENT where there is no such program
 */
int port_supervise_start(struct supervised *supervised, char **argv, bool takes_commands);
/** Wait until a time of CLOCK_MONOTONIC for whatever comes first. @return an event, or -errno */
int port_supervise_wait(struct supervised *supervised, int64_t deadline_monotonic_ns);
/** Read what there is. @param event  SUPERVISE_COMMAND, _OUT or _ERR @return bytes; 0: at its end; or -errno */
int64_t port_supervise_read(struct supervised *supervised, enum supervise_event event, void *data, size_t size_bytes);
/** Write to the program's stdin. @return 0 or -errno */
int port_supervise_tell(struct supervised *supervised, const char *text, size_t size_bytes);
/** Close the program's stdin. */
void port_supervise_tell_end(struct supervised *supervised);
/** Ask the program and its group to end (SIGTERM); harmless when it has ended. */
void port_supervise_ask_end(const struct supervised *supervised);
/** End the program and all that it has started, whatever they do, and wait for it. @return 0, or -EBUSY: not within a second */
int port_supervise_end_all(struct supervised *supervised);

/** Whether a socket of this network namespace is bound to a port; of TCP, whether it listens. Nothing is sent. */
bool port_supervise_is_bound(int port, bool tcp);
bool port_supervise_is_file(const char *path);
/** Make a folder's path the one that this process works in; what it and the program keep for a while goes there, too. @return 0 or -errno */
int port_supervise_enter(const char *folder);
/** Set a variable of the environment that the program will have. @return 0 or -errno */
int port_supervise_set(const char *name, const char *value);

#endif
