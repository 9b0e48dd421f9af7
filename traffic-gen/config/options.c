/* SPDX-License-Identifier: Apache-2.0 */
#include "config/options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARSED_HELP = -1 };

int option_parse_int(const char *text, int64_t min, int64_t max, int64_t *value)
{
	const char *digits = *text == '-' ? text + 1 : text;
	char *end;
	long long number;

	if (*digits < '0' || *digits > '9')
		return -EINVAL; /* strtoll would skip blanks and take a plus sign */
	errno = 0;
	number = strtoll(text, &end, 10);
	if (*end != '\0')
		return -EINVAL;
	if (errno == ERANGE || number < min || number > max)
		return -ERANGE;
	*value = number;
	return 0;
}

static int parse_list(const struct option *option, const char *text)
{
	struct option_list *list = option->target;
	char number[24];

	memset(list, 0, sizeof(*list));
	if (option->list_all && strcmp(text, "all") == 0) {
		list->all = true;
		return 0;
	}
	for (;;) {
		size_t length = strcspn(text, ",");
		int64_t value;
		int err;

		if (length >= sizeof(number))
			return -EINVAL;
		memcpy(number, text, length);
		number[length] = '\0';
		err = option_parse_int(number, option->min, option->max, &value);
		if (err)
			return err;
		if (list->count == OPTION_LIST_MAX)
			return -ERANGE;
		list->values[list->count++] = (int)value;
		if (text[length] == '\0')
			return 0;
		text += length + 1;
	}
}

static int add_text(const struct command *command, const struct option *option, const char *text)
{
	struct option_texts *texts = option->target;

	if (texts->count == texts->room) {
		fprintf(stderr, "%s: --%s is given more than %d times\n", command->name, option->name, texts->room);
		return -EINVAL;
	}
	texts->texts[texts->count++] = text;
	return 0;
}

static int store(const struct command *command, const struct option *option, const char *text)
{
	int err = 0;

	switch (option->kind) {
	case OPTION_FLAG:
		*(bool *)option->target = true;
		return 0;
	case OPTION_TEXT:
		*(const char **)option->target = text;
		return 0;
	case OPTION_TEXTS:
		return add_text(command, option, text);
	case OPTION_INT:
		err = option_parse_int(text, option->min, option->max, option->target);
		break;
	case OPTION_LIST:
		err = parse_list(option, text);
		break;
	}
	if (err)
		fprintf(stderr, "%s: --%s: \"%s\" is %s; allowed: %s%" PRId64 "..%" PRId64 "%s\n", command->name, option->name,
			text, err == -ERANGE ? "out of range" : "not a number", option->kind == OPTION_LIST ? "a list of " : "",
			option->min, option->max, option->list_all ? ", or all" : "");
	return err ? -EINVAL : 0;
}

static void print_help(const struct command *command)
{
	printf("usage: %s %s\n\n%s\n", command->name, command->usage, command->about);
	for (const struct option *o = command->options; o->name; o++) {
		char left[40];

		snprintf(left, sizeof(left), "--%s%s%s", o->name, o->argument ? " " : "", o->argument ? o->argument : "");
		printf("  %-24s %s\n", left, o->help);
	}
	printf("  %-24s %s\n", "--help", "show this text");
}

static const struct option *find(const struct command *command, const char *name, size_t length)
{
	for (const struct option *o = command->options; o->name; o++) {
		if (strlen(o->name) == length && memcmp(o->name, name, length) == 0)
			return o;
	}
	return NULL;
}

/* Read the option at argv[*index], "--name value" or "--name=value". */
static int parse_option(const struct command *command, int argc, char **argv, int *index)
{
	const char *name = argv[*index] + 2;
	size_t length = strcspn(name, "=");
	const struct option *option = find(command, name, length);
	const char *value = name[length] == '=' ? name + length + 1 : NULL;

	if (!option) {
		fprintf(stderr, "%s: unknown option \"%s\" (see --help)\n", command->name, argv[*index]);
		return -EINVAL;
	}
	if (option->kind == OPTION_FLAG && value) {
		fprintf(stderr, "%s: --%s takes no value\n", command->name, option->name);
		return -EINVAL;
	}
	if (option->kind != OPTION_FLAG && !value) {
		if (*index + 1 >= argc) {
			fprintf(stderr, "%s: --%s needs a value: %s\n", command->name, option->name, option->argument);
			return -EINVAL;
		}
		value = argv[++*index];
	}
	return store(command, option, value);
}

int options_parse(const struct command *command, int argc, char **argv, const char **positionals)
{
	int count = 0;

	for (int i = 1; i < argc; i++) {
		int err;

		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
			print_help(command);
			return PARSED_HELP;
		}
		if (strncmp(argv[i], "--", 2) == 0) {
			err = parse_option(command, argc, argv, &i);
			if (err)
				return err;
			continue;
		}
		if (count == command->positional_max) {
			fprintf(stderr, "%s: surplus argument \"%s\" (see --help)\n", command->name, argv[i]);
			return -EINVAL;
		}
		positionals[count++] = argv[i];
	}
	if (count < command->positional_min) {
		fprintf(stderr, "%s: usage: %s %s\n", command->name, command->name, command->usage);
		return -EINVAL;
	}
	return count;
}

int option_refuse(const char *tool, const char *option, const char *text, const char *needed)
{
	fprintf(stderr, "%s: %s: \"%s\"; needed: %s\n", tool, option, text ? text : "", needed);
	return EXIT_BAD_INPUT;
}

static bool is_written(void)
{
	return fflush(stdout) == 0 && !ferror(stdout);
}

int exit_code_if_written(const char *name, int code)
{
	if (is_written() || code != EXIT_DONE)
		return code;
	fprintf(stderr, "%s: what it had to say could not be written\n", name);
	return EXIT_CAPABILITY;
}

int options_exit_code(int parsed)
{
	if (parsed != PARSED_HELP)
		return EXIT_BAD_INPUT;
	return is_written() ? EXIT_DONE : EXIT_CAPABILITY;
}
