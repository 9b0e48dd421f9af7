/* SPDX-License-Identifier: Apache-2.0 */
#include "program_file.h"

#include <errno.h>
#include <string.h>

/* Of the ELF format (elf.h is the system's). */
enum {
	IDENT_BYTES = 16,
	AT_CLASS = 4,
	AT_BYTE_ORDER = 5,
	CLASS_32 = 1,
	CLASS_64 = 2,
	LITTLE_ENDIAN_FIRST = 1,
	BIG_ENDIAN_FIRST = 2,
	TYPE_EXECUTABLE = 2,
	TYPE_SHARED = 3,
	AT_TYPE = 16,
	AT_MACHINE = 18,
	SEGMENT_LOADER = 3,
	SEGMENT_BYTES_MAX = 56,
};

/* Where fields are, by class. */
struct layout {
	int header_bytes, word_bytes, at_segments, at_segment_bytes, at_segment_count;
	int segment_bytes, at_offset, at_file_bytes;
};

static const struct layout layouts[] = {
	[CLASS_32] = { 52, 4, 28, 42, 44, 32, 4, 16 },
	[CLASS_64] = { 64, 8, 32, 54, 56, 56, 8, 32 },
};

static const char magic[] = { 0x7f, 'E', 'L', 'F' };

static uint64_t number(const struct program_file *program, const uint8_t *bytes, int count)
{
	uint64_t value = 0;

	for (int i = 0; i < count; i++)
		value = value << 8 | bytes[program->byte_order == BIG_ENDIAN_FIRST ? i : count - 1 - i];
	return value;
}

/* Return 0, -ENOEXEC (the file ends before) or -EIO. */
static int read_at(FILE *file, uint64_t offset, void *buffer, size_t bytes)
{
	if (offset > INT32_MAX || fseek(file, (long)offset, SEEK_SET))
		return -ENOEXEC;
	if (fread(buffer, 1, bytes, file) == bytes)
		return 0;
	return ferror(file) ? -EIO : -ENOEXEC;
}

static int read_loader(FILE *file, const struct layout *layout, const uint8_t *segment, struct program_file *program)
{
	uint64_t offset = number(program, segment + layout->at_offset, layout->word_bytes);
	uint64_t bytes = number(program, segment + layout->at_file_bytes, layout->word_bytes);
	int err;

	if (bytes < 2 || bytes > sizeof(program->loader))
		return -ENOEXEC;
	err = read_at(file, offset, program->loader, (size_t)bytes);
	if (!err && program->loader[bytes - 1] != '\0')
		err = -ENOEXEC;
	if (err)
		program->loader[0] = '\0';
	else
		program->is_dynamic = true;
	return err;
}

static int read_segments(FILE *file, const struct layout *layout, const uint8_t *header, struct program_file *program)
{
	uint64_t at = number(program, header + layout->at_segments, layout->word_bytes);
	int count = (int)number(program, header + layout->at_segment_count, 2);
	int apart = (int)number(program, header + layout->at_segment_bytes, 2);
	uint8_t segment[SEGMENT_BYTES_MAX];

	if (count && apart != layout->segment_bytes)
		return -ENOEXEC;
	for (int i = 0; i < count; i++) {
		int err = read_at(file, at + (uint64_t)i * (uint64_t)apart, segment, (size_t)apart);

		if (err)
			return err;
		if (number(program, segment, 4) == SEGMENT_LOADER)
			return read_loader(file, layout, segment, program);
	}
	return 0;
}

static int read_elf(FILE *file, const uint8_t *head, size_t head_bytes, struct program_file *program)
{
	const struct layout *layout;
	uint64_t type;

	program->kind = PROGRAM_ELF;
	if (head_bytes < IDENT_BYTES)
		return -ENOEXEC;
	program->elf_class = head[AT_CLASS];
	program->byte_order = head[AT_BYTE_ORDER];
	if ((program->elf_class != CLASS_32 && program->elf_class != CLASS_64) ||
	    (program->byte_order != LITTLE_ENDIAN_FIRST && program->byte_order != BIG_ENDIAN_FIRST))
		return -ENOEXEC;
	layout = &layouts[program->elf_class];
	if (head_bytes < (size_t)layout->header_bytes)
		return -ENOEXEC;
	type = number(program, head + AT_TYPE, 2);
	program->machine = (uint16_t)number(program, head + AT_MACHINE, 2);
	program->is_shared = type == TYPE_SHARED;
	return type == TYPE_EXECUTABLE || type == TYPE_SHARED ? read_segments(file, layout, head, program) : -ENOEXEC;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* As fs/binfmt_script.c of Linux: a name that the line's bytes cut off is none, an argument may be cut off. */
static int read_script(const char *head, size_t head_bytes, struct program_file *program)
{
	const char *end = memchr(head, '\n', head_bytes), *at = head + 2, *last;
	bool is_whole = end != NULL || head_bytes < PROGRAM_LINE_BYTES;

	program->kind = PROGRAM_SCRIPT;
	end = end ? end : head + head_bytes;
	while (at < end && is_blank(*at))
		at++;
	last = at;
	while (last < end && !is_blank(*last) && *last)
		last++;
	if (last == at || (last == end && !is_whole))
		return -ENOEXEC;
	memcpy(program->interpreter, at, (size_t)(last - at));
	at = last;
	while (at < end && is_blank(*at))
		at++;
	last = at;
	while (last < end && *last)
		last++;
	while (last > at && is_blank(last[-1]))
		last--;
	memcpy(program->argument, at, (size_t)(last - at));
	return 0;
}

int program_file_read(FILE *file, struct program_file *program)
{
	uint8_t head[PROGRAM_LINE_BYTES];
	size_t bytes = fread(head, 1, sizeof(head), file);

	memset(program, 0, sizeof(*program));
	if (ferror(file))
		return -EIO;
	if (bytes >= sizeof(magic) && memcmp(head, magic, sizeof(magic)) == 0)
		return read_elf(file, head, bytes, program);
	if (bytes >= 2 && memcmp(head, "#!", 2) == 0)
		return read_script((const char *)head, bytes, program);
	program->kind = memchr(head, '\0', bytes) ? PROGRAM_OTHER : PROGRAM_TEXT;
	return 0;
}
