/* SPDX-License-Identifier: Apache-2.0 */
/** Fuzz target: the page of a program, as the service checks it, or (first byte `t`) the service's text, as bw-netstat shows it. */
#include <stdio.h>
#include <string.h>

#include "../traffic_gen/fuzz.h"
#include "netstat/json_text.h"
#include "netstat/netstat.h"
#include "service/program_page.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return freopen("/dev/null", "w", stdout) ? 0 : -1; /* the table itself is of no use */
}

/* Bytes behind the input are zeros, but for the number at the end. */
static void check_page(const uint8_t *data, size_t size)
{
	static struct program_page page;

	memset(&page, 0, sizeof(page));
	memcpy(&page, data, size < sizeof(page) ? size : sizeof(page));
	if (!program_page_check(&page))
		return;
	promise(page.sockets <= PROGRAM_PAGE_SOCKETS && memchr(page.name, 0, sizeof(page.name)) != NULL);
	for (uint32_t i = 0; i < page.sockets; i++) {
		promise(program_state_name(page.socket[i].state) != NULL);
		promise(page.socket[i].duplicates <= PROGRAM_PAGE_NUMBER_MAX);
	}
}

static void show_text(const uint8_t *data, size_t size)
{
	const struct choice all = { .all = true, .extended = true, .program = true }, none = { .all = false };
	char *text = malloc(size + 1), word[8]; /* a copy whose end is found by the sanitizer */

	promise(text != NULL);
	memcpy(text, data, size);
	text[size] = '\0';
	sockets_print(text, &all);
	sockets_print(text, &none);
	counters_print(text, &none);
	promise(strlen(json_text_string(json_text_member(text, "interface"), word, sizeof(word))) < sizeof(word));
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size && data[0] == 't')
		show_text(data + 1, size - 1);
	else
		check_page(data, size);
	return 0;
}
