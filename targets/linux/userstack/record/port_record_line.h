/* SPDX-License-Identifier: Apache-2.0 */
/* The record's text, a line of JSON for each call, and the sockets that it numbers. docs/user-stack.md has the fields. */
#ifndef BW_PORT_RECORD_LINE_H
#define BW_PORT_RECORD_LINE_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define EXPORT __attribute__((visibility("default")))
/* The call behind this one, the next library's or the C library's, and when it begins. */
#define NEXT(name) \
	static __typeof__(name) *next; \
	if (!next) \
		*(void **)&next = dlsym(RTLD_NEXT, #name); \
	const int64_t begin_monotonic_ns = record_now_ns()

enum { LINE_BYTES = 4096, IN = 0, OUT = 1 };

struct line {
	char text[LINE_BYTES];
	size_t used;
};

/** What was to be sent or received. */
struct transfer {
	const char *call;
	int fd, way, flags;
	const struct iovec *parts;
	size_t part_count;
	int64_t begin_monotonic_ns; /* CLOCK_MONOTONIC */
};

/** CLOCK_MONOTONIC. */
int64_t record_now_ns(void);
/** Number of a socket, from 1 in the order in which the program made them; 0: none that is recorded. */
uint32_t socket_number(int fd);
/** A new socket is behind a descriptor. */
void socket_note(int fd);
/** There is none behind a descriptor any more. */
void socket_forget(int fd);
/** Begin the line of a call that began at `begin_monotonic_ns`, and is over. @param fd  -1: of no socket */
void line_open(struct line *line, const char *call, int fd, int64_t begin_monotonic_ns);
__attribute__((format(printf, 2, 3))) void line_add(struct line *line, const char *format, ...);
/** Add text of the program's: what is not a letter of a host's name becomes a question mark. */
void line_add_name(struct line *line, const char *name);
void line_add_address(struct line *line, const char *key, const struct sockaddr *address, socklen_t length);
/** Add what was asked for and, where it did not fail, the bytes of that way so far with their sum. */
void line_add_transfer(struct line *line, const struct transfer *transfer, ssize_t size);
/** Write the line with the result, negative: the error. errno is `err` behind it. */
void line_close(struct line *line, int64_t result, int err);
/** Write it with an end of the caller's. errno is `err` behind it. */
void line_write(struct line *line, int err);

#endif
