/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of commands out of a stream of bytes; of one that is too long no more is kept than shows that it is. Pure. */
#ifndef BW_LOOP_LINES_H
#define BW_LOOP_LINES_H

#include <stdbool.h>
#include <stddef.h>

#include "loop/camera/command.h"

struct lines {
	char text[COMMAND_BYTES_MAX + 1];
	size_t length_bytes; /* with the end of the line; COMMAND_BYTES_MAX + 1: too long */
	bool is_whole;
};

/** Take a byte. @return whether a line is whole: text and length_bytes are it until the next byte */
static inline bool lines_take(struct lines *lines, char byte)
{
	if (lines->is_whole)
		lines->length_bytes = 0;
	if (lines->length_bytes <= COMMAND_BYTES_MAX)
		lines->text[lines->length_bytes++] = byte;
	lines->is_whole = byte == '\n';
	return lines->is_whole;
}

/** Whether a line has begun that has no end. */
static inline bool lines_is_open(const struct lines *lines)
{
	return lines->length_bytes && !lines->is_whole;
}

#endif
