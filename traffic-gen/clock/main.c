/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "clock_verbs.h"
#include "options.h"
#include "port.h"
#include "verbs.h"

struct verb {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *about;
};

static const struct verb verbs[] = {
	{ "compare", verb_compare, "measure one clock against another" },
	{ "latency", verb_latency, "measure what reading a clock costs" },
	{ "card", verb_card, "serve, publish or calibrate the virtual timecard" },
	{ NULL, NULL, NULL },
};

static const struct verb card_verbs[] = {
	{ "serve", card_serve, "on the host: answer calibrations and publish time" },
	{ "publish", card_publish, "in a guest: publish this machine's own time" },
	{ "calibrate", card_trials, "in a guest: offset of the host's counter, trial by trial" },
	{ NULL, NULL, NULL },
};

static void print_usage(FILE *out, const char *name, const struct verb *table)
{
	fprintf(out, "usage: %s VERB [options]; %s VERB --help explains\n\n", name, name);
	for (const struct verb *verb = table; verb->name; verb++)
		fprintf(out, "  %-10s %s\n", verb->name, verb->about);
	if (table == verbs)
		fputs("\nCLOCK is one of: realtime, realtime-coarse, tai, monotonic-raw, tsc, phc:/dev/ptpN, card[:PATH],\n"
		      "plugin:PATH[,ARGUMENTS].\n", out);
}

static int run(const char *name, const struct verb *table, int argc, char **argv)
{
	if (argc < 2) {
		print_usage(stderr, name, table);
		return EXIT_BAD_INPUT;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		print_usage(stdout, name, table);
		return EXIT_DONE;
	}
	for (const struct verb *verb = table; verb->name; verb++) {
		if (strcmp(argv[1], verb->name) == 0)
			return verb->run(argc - 1, argv + 1);
	}
	fprintf(stderr, "%s: unknown verb \"%s\" (see --help)\n", name, argv[1]);
	return EXIT_BAD_INPUT;
}

int verb_card(int argc, char **argv)
{
	return run("bw-clock card", card_verbs, argc, argv);
}

int main(int argc, char **argv)
{
	int err;

	if (argc >= 2 && strcmp(argv[1], "--version") == 0) {
		puts("bw-clock " BW_VERSION);
		return EXIT_DONE;
	}
	err = port_init();
	if (err) {
		fprintf(stderr, "bw-clock: this machine cannot be used: %s\n", strerror(-err));
		return EXIT_CAPABILITY;
	}
	return run("bw-clock", verbs, argc, argv);
}
