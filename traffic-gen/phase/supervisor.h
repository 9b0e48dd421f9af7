/* SPDX-License-Identifier: Apache-2.0 */
/* A component of an experiment: a program, its answers to the phases of the experiment, and its end. */
#ifndef BW_SUPERVISOR_H
#define BW_SUPERVISOR_H

#include <stdbool.h>
#include <stdint.h>

enum ready_kind {
	READY_AT_ONCE, /* when it was started */
	READY_JSON,    /* with a line of type ready, as the native tools write it */
	READY_LINE,    /* with a line that holds a text */
	READY_TCP,     /* when a port listens */
	READY_UDP,     /* when a port is bound */
	READY_FILE,    /* when a file is there */
};

struct component {
	char **program;
	bool has_phases;         /* of its own, by libbwphase */
	enum ready_kind ready;
	const char *ready_text;  /* READY_LINE: the text; READY_FILE: the path */
	int ready_port;
	int64_t output_max_bytes; /* of stdout and stderr together */
	int64_t grace_ns;         /* from SIGTERM to SIGKILL */
	const int *ok_codes;      /* exit codes besides 0 that are no failure */
	int ok_code_count;
};

/** Serve the phases on stdin and stdout until stdin ends; then nothing of the program is left. @return exit code (options.h) */
int supervise(const struct component *component);

#endif
