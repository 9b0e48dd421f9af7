/* SPDX-License-Identifier: Apache-2.0 */
/* What a tracker says to a camera: a line of text for each command. Pure. */
#ifndef BW_LOOP_COMMAND_H
#define BW_LOOP_COMMAND_H

#include <stddef.h>
#include <stdint.h>

#include "loop/camera/pose.h"

enum { COMMAND_BYTES_MAX = 127 }; /* the end of the line is one of them */

/** "look PICTURE X Y ZOOM\n": where to look, not by how much to move. */
struct loop_command {
	uint32_t picture; /* the number of the one that it answers */
	struct pose look;
};

/** Write a line. @return its length in bytes, the end of the line among them; a 0 follows */
size_t command_print(const struct loop_command *command, char line[static COMMAND_BYTES_MAX + 1]);
/** Read one line, with its end. @return NULL, or why it is none; *command is then as before */
const char *command_parse(const char *line, size_t length_bytes, struct loop_command *command);

#endif
