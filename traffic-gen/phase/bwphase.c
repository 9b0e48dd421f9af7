/* SPDX-License-Identifier: Apache-2.0 */
#include "bwphase.h"

#include <stdio.h>
#include <string.h>

#define BEGIN "{\"type\":\"phase\",\"name\":\""
#define MIDDLE "\",\"parameters\":"
#define NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyz0123456789-"

enum { VALUES_MAX = 32 };

struct phase {
	char name[BW_PHASE_NAME_BYTES];
	bw_phase_function *function;
	void *context;
};

static struct phase phases[BW_PHASES_MAX];
static int phase_count;
static struct {
	char key[BW_PHASE_NAME_BYTES];
	double value;
} values[VALUES_MAX];
static int value_count;

static bool is_name(const char *text, size_t length)
{
	return length > 0 && length < BW_PHASE_NAME_BYTES && strspn(text, NAME_CHARACTERS) >= length;
}

int bw_phase_register(const char *name, bw_phase_function *function, void *context)
{
	if (phase_count == BW_PHASES_MAX || !function || !is_name(name, strlen(name)))
		return -1;
	for (int i = 0; i < phase_count; i++)
		if (!strcmp(phases[i].name, name))
			return -1;
	strcpy(phases[phase_count].name, name);
	phases[phase_count].function = function;
	phases[phase_count++].context = context;
	return 0;
}

int bw_phase_value(const char *key, double value)
{
	/* Of C's numbers NaN and the infinities are none of JSON's. */
	if (value_count == VALUES_MAX || strlen(key) >= BW_PHASE_NAME_BYTES || !(value - value == 0.0))
		return -1;
	strcpy(values[value_count].key, key);
	values[value_count++].value = value;
	return 0;
}

bool bw_phase_parse(const char *line, struct bw_phase_line *found)
{
	const char *name = line + sizeof(BEGIN) - 1, *end;
	size_t length;

	if (strncmp(line, BEGIN, sizeof(BEGIN) - 1) != 0)
		return false;
	end = strchr(name, '"');
	if (!end || !is_name(name, (size_t)(end - name)) || strncmp(end, MIDDLE, sizeof(MIDDLE) - 1) != 0)
		return false;
	memcpy(found->name, name, (size_t)(end - name));
	found->name[end - name] = '\0';
	found->parameters = end + sizeof(MIDDLE) - 1;
	length = strlen(found->parameters);
	if (length < 3 || found->parameters[0] != '{' || found->parameters[length - 2] != '}' || found->parameters[length - 1] != '}')
		return false;
	found->parameters_bytes = length - 1;
	return true;
}

/* A text as JSON has it; bytes beyond ASCII go as they are. */
static void print_text(const char *text)
{
	putchar('"');
	for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
		if (*at == '"' || *at == '\\')
			printf("\\%c", *at);
		else if (*at < ' ')
			printf("\\u%04x", *at);
		else
			putchar(*at);
	}
	putchar('"');
}

static void answer(const char *name, int code, const char *reason)
{
	printf("{\"type\":\"%s\",\"phase\":", code ? "failed" : "done");
	print_text(name);
	if (code) {
		printf(",\"reason\":");
		print_text(reason);
	}
	printf(",\"values\":{");
	for (int i = 0; i < value_count; i++) {
		printf("%s", i ? "," : "");
		print_text(values[i].key);
		printf(":%.17g", values[i].value);
	}
	printf("}}\n");
	fflush(stdout);
}

static void work(const struct bw_phase_line *line, char *parameters)
{
	char reason[BW_PHASE_REASON_BYTES] = "";
	const struct phase *phase = NULL;
	int code;

	for (int i = 0; i < phase_count && !phase; i++)
		if (!strcmp(phases[i].name, line->name))
			phase = &phases[i];
	value_count = 0;
	if (!phase) {
		answer(line->name, 1, "the program has no such phase");
		return;
	}
	parameters[line->parameters_bytes] = '\0';
	code = phase->function(phase->context, parameters, reason, sizeof(reason));
	if (code && !reason[0])
		snprintf(reason, sizeof(reason), "returned %d", code);
	answer(line->name, code, reason);
}

int bw_phase_run(void)
{
	static char text[BW_PHASE_LINE_BYTES];

	printf("{\"type\":\"ready\",\"schema\":\"benchwright.phase/1\",\"phases\":[");
	for (int i = 0; i < phase_count; i++) {
		printf("%s", i ? "," : "");
		print_text(phases[i].name);
	}
	printf("]}\n");
	fflush(stdout);
	while (fgets(text, sizeof(text), stdin)) {
		struct bw_phase_line line;
		size_t length = strcspn(text, "\r\n");

		text[length] = '\0';
		if (!bw_phase_parse(text, &line)) {
			fprintf(stderr, "bwphase: no phase: %.80s\n", text);
			return 2;
		}
		work(&line, text + (line.parameters - text));
	}
	return 0;
}
