/* SPDX-License-Identifier: Apache-2.0 */
/* What the file of a program says of how it is started. Pure: of the standard library's files alone. */
#ifndef BW_ACCEL_PROGRAM_FILE_H
#define BW_ACCEL_PROGRAM_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { PROGRAM_LINE_BYTES = 256 }; /* the kernel reads no more of a line `#!` */

enum program_kind {
	PROGRAM_ELF,
	PROGRAM_SCRIPT, /* it begins with `#!` */
	PROGRAM_TEXT,   /* execvp(3) lets /bin/sh run it */
	PROGRAM_OTHER,
};

struct program_file {
	enum program_kind kind;
	/* ELF */
	bool is_dynamic;              /* a loader is named: it can have libraries */
	bool is_shared;               /* ET_DYN: a library, or a program that may lie anywhere */
	uint8_t elf_class, byte_order; /* as e_ident has them */
	uint16_t machine;
	char loader[PROGRAM_LINE_BYTES];
	/* Scripts: the line's two words; the second one has blanks in it where the line has. */
	char interpreter[PROGRAM_LINE_BYTES], argument[PROGRAM_LINE_BYTES];
};

/**
 * Read it.
 *
 * @return 0; -ENOEXEC: it is damaged, so that the kernel would not start it; -EIO: it cannot be read
 */
int program_file_read(FILE *file, struct program_file *program);

#endif
