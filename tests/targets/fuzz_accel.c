/* SPDX-License-Identifier: Apache-2.0 */
/** Fuzz target: what bw-accel reads. The first byte says which: a list of `--only`, or the file of a program. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../traffic_gen/fuzz.h"
#include "allow_list.h"
#include "program_file.h"

/* An entry that is taken has something: its first port, or its own address. */
static void ask(const struct allow_list *list, const struct allow_entry *entry)
{
	int protocol = entry->protocol ? entry->protocol : 6;

	if (entry->first_port) {
		promise(entry->last_port >= entry->first_port);
		promise(allow_list_has(list, protocol, NULL, false, entry->last_port, 0));
		return;
	}
	promise(entry->prefix_bits >= 0 && entry->prefix_bits <= (entry->ipv6 ? 128 : 32));
	promise(allow_list_has(list, protocol, entry->ip, entry->ipv6, 0, 0));
}

static void read_list(const uint8_t *data, size_t size)
{
	/* A copy whose end is found by the sanitizer. */
	char *text = malloc(size + 1);
	const char *wrong = NULL;
	struct allow_list list;
	int err;

	promise(text != NULL);
	memcpy(text, data, size);
	text[size] = '\0';
	err = allow_list_parse(text, &list, &wrong);
	promise(err == 0 || err == -EINVAL || err == -ERANGE || err == -E2BIG);
	if (err)
		promise(list.count == 0 && wrong >= text && wrong <= text + strlen(text));
	for (int i = 0; i < list.count; i++)
		ask(&list, &list.entries[i]);
	free(text);
}

static void read_program(const uint8_t *data, size_t size)
{
	FILE *file = size ? fmemopen((void *)data, size, "rb") : NULL;
	struct program_file program;
	int err;

	if (!file)
		return;
	err = program_file_read(file, &program);
	fclose(file);
	promise(err == 0 || err == -ENOEXEC || err == -EIO);
	promise(memchr(program.loader, '\0', sizeof(program.loader)) != NULL);
	promise(memchr(program.interpreter, '\0', sizeof(program.interpreter)) != NULL);
	promise(memchr(program.argument, '\0', sizeof(program.argument)) != NULL);
	promise(err || program.kind != PROGRAM_SCRIPT || *program.interpreter);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size && data[0] == 'l')
		read_list(data + 1, size - 1);
	else if (size)
		read_program(data + 1, size - 1);
	return 0;
}
