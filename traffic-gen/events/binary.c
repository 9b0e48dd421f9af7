/* SPDX-License-Identifier: Apache-2.0 */
#include "events/binary.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "events/layout.h"

#define SECTION "bwevents"

enum { SECTIONS_MAX = 65535, NAME_BYTES = sizeof(SECTION) };

struct reader {
	FILE *file;
	int err; /* of the first read that failed */
};

static void read_at(struct reader *reader, uint64_t at, void *data, size_t size_bytes)
{
	memset(data, 0, size_bytes);
	if (reader->err)
		return;
	if (at > INT32_MAX || fseek(reader->file, (long)at, SEEK_SET) || fread(data, 1, size_bytes, reader->file) != size_bytes)
		reader->err = -EBADMSG;
}

/* A number of some bytes, the least first. */
static uint64_t number_at(struct reader *reader, uint64_t at, unsigned int bytes)
{
	uint8_t raw[8];
	uint64_t value = 0;

	read_at(reader, at, raw, bytes);
	while (bytes)
		value = value << 8 | raw[--bytes];
	return value;
}

/* System V ABI, chapter 4: the section's place by its name. Sizes: none is 0. */
static void find_elf(struct reader *reader, bool wide, uint64_t *at_out, uint64_t *size_out)
{
	uint64_t table = number_at(reader, wide ? 0x28 : 0x20, wide ? 8 : 4);
	uint64_t entry = number_at(reader, wide ? 0x3a : 0x2e, 2);
	uint64_t count = number_at(reader, wide ? 0x3c : 0x30, 2);
	uint64_t names_header = table + entry * number_at(reader, wide ? 0x3e : 0x32, 2);
	uint64_t names = number_at(reader, names_header + (wide ? 0x18 : 0x10), wide ? 8 : 4);

	for (uint64_t i = 0; i < count && !reader->err; i++) {
		uint64_t header = table + i * entry;
		char name[NAME_BYTES];

		if (number_at(reader, header + 4, 4) != 1) /* a section without bytes in the file, or of the linker's */
			continue;
		read_at(reader, names + number_at(reader, header, 4), name, sizeof(name));
		if (memcmp(name, SECTION, sizeof(name)) != 0)
			continue;
		*at_out = number_at(reader, header + (wide ? 0x18 : 0x10), wide ? 8 : 4);
		*size_out = number_at(reader, header + (wide ? 0x20 : 0x14), wide ? 8 : 4);
		return;
	}
}

/* PE format of Microsoft, section table: names have eight bytes, of which the last need not be 0. */
static void find_pe(struct reader *reader, uint64_t *at_out, uint64_t *size_out)
{
	uint64_t header = number_at(reader, 0x3c, 4);
	uint64_t count = number_at(reader, header + 6, 2);
	uint64_t table = header + 24 + number_at(reader, header + 20, 2);

	for (uint64_t i = 0; i < count && !reader->err; i++) {
		uint64_t used, raw;
		char name[8];

		read_at(reader, table + i * 40, name, sizeof(name));
		if (memcmp(name, SECTION, sizeof(name)) != 0)
			continue;
		used = number_at(reader, table + i * 40 + 8, 4);
		raw = number_at(reader, table + i * 40 + 16, 4);
		*at_out = number_at(reader, table + i * 40 + 20, 4);
		*size_out = used < raw ? used : raw;
		return;
	}
}

static int find(struct reader *reader, uint64_t *at_out, uint64_t *size_out)
{
	uint8_t magic[6];
	uint8_t pe[4];

	read_at(reader, 0, magic, sizeof(magic));
	if (reader->err)
		return -ENOEXEC;
	if (!memcmp(magic, "\177ELF", 4)) {
		if (magic[5] != 1)
			return -EXDEV;
		find_elf(reader, magic[4] == 2, at_out, size_out);
	} else if (!memcmp(magic, "MZ", 2)) {
		read_at(reader, number_at(reader, 0x3c, 4), pe, sizeof(pe));
		if (memcmp(pe, "PE\0\0", sizeof(pe)) != 0)
			return -ENOEXEC;
		find_pe(reader, at_out, size_out);
	} else {
		return -ENOEXEC;
	}
	return reader->err;
}

static int64_t read_points(struct reader *reader, struct bw_point_description **descriptions_out)
{
	uint64_t at = 0, size_bytes = 0, count;
	struct bw_point_description *all;
	int err = find(reader, &at, &size_bytes);

	if (err || !size_bytes)
		return err;
	count = size_bytes / sizeof(*all);
	if (size_bytes % sizeof(*all) || count > EVENTS_POINTS_MAX)
		return -EBADMSG;
	all = calloc(count, sizeof(*all));
	if (!all)
		return -ENOMEM;
	read_at(reader, at, all, size_bytes);
	err = reader->err;
	for (uint64_t i = 0; !err && i < count; i++)
		if (events_description_check(&all[i]))
			err = -EBADMSG;
	if (err) {
		free(all);
		return err;
	}
	*descriptions_out = all;
	return (int64_t)count;
}

int64_t binary_points(const char *path, struct bw_point_description **descriptions_out)
{
	struct reader reader = { fopen(path, "rb"), 0 };
	int64_t found;

	*descriptions_out = NULL;
	if (!reader.file)
		return -errno;
	found = read_points(&reader, descriptions_out);
	fclose(reader.file);
	return found;
}
