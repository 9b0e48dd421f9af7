/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of bw-netstat. `text` is what the service has said: docs/user-stack.md. */
#ifndef BW_NETSTAT_H
#define BW_NETSTAT_H

#include <stdbool.h>

/* What is wanted. */
struct choice {
	bool listening, all, tcp, udp, extended, program;
};

enum { NETSTAT_NAME_BYTES = 32 };

/** sockets.c: print a table of sockets. */
void sockets_print(const char *text, const struct choice *choice);
/** counters.c: print the counters of all programs. */
void counters_print(const char *text, const struct choice *choice);

#endif
