/* SPDX-License-Identifier: Apache-2.0 */
#include "config/verb_table.h"

#include <stdio.h>
#include <string.h>

#include "config/options.h"
#include "version.h"

static void print_usage(FILE *out, const struct verb_table *table)
{
	fprintf(out, "usage: %s VERB [options]; %s VERB --help explains\n\n", table->name, table->name);
	for (const struct verb *verb = table->verbs; verb->name; verb++)
		fprintf(out, "  %-10s %s\n", verb->name, verb->about);
	if (table->more)
		fprintf(out, "\n%s", table->more);
}

static const struct verb *find(const struct verb_table *table, const char *name)
{
	for (const struct verb *verb = table->verbs; verb->name; verb++) {
		if (strcmp(verb->name, name) == 0)
			return verb;
	}
	return NULL;
}

int verb_table_run(const struct verb_table *table, int argc, char **argv)
{
	const struct verb *verb;
	int err;

	if (argc < 2) {
		print_usage(stderr, table);
		return EXIT_BAD_INPUT;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		print_usage(stdout, table);
		return exit_code_if_written(table->name, EXIT_DONE);
	}
	if (strcmp(argv[1], "--version") == 0) {
		printf("%s " BW_VERSION "\n", table->name);
		return exit_code_if_written(table->name, EXIT_DONE);
	}
	verb = find(table, argv[1]);
	if (!verb) {
		fprintf(stderr, "%s: unknown verb \"%s\" (see --help)\n", table->name, argv[1]);
		return EXIT_BAD_INPUT;
	}
	err = table->begin ? table->begin() : 0;
	if (err) {
		fprintf(stderr, "%s: this machine cannot be used: %s\n", table->name, strerror(-err));
		return EXIT_CAPABILITY;
	}
	return exit_code_if_written(table->name, verb->run(argc - 1, argv + 1));
}
