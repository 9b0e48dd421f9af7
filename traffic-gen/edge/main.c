/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "edge_verbs.h"
#include "options.h"
#include "port.h"
#include "verbs.h"

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *about;
} verbs[] = {
	{ "serve", verb_serve, "on the virtual bench's host: make the edges of guests" },
	{ "follow-phc", verb_follow_phc, "in a guest: tell its edge device the PTP hardware clock" },
	{ "output", verb_output, "make edges at instants of a pin's clock" },
	{ "capture", verb_capture, "note when the edges of an input come" },
	{ "run", verb_run, "the software under test: edges that coincide with those of a clock" },
	{ "latch", verb_latch, "software's idea of the time of an edge, against its capture" },
};

enum { VERBS = sizeof(verbs) / sizeof(verbs[0]) };

static void print_usage(FILE *out)
{
	fputs("usage: bw-edge VERB [options]; bw-edge VERB --help explains\n\n", out);
	for (size_t i = 0; i < VERBS; i++)
		fprintf(out, "  %-10s %s\n", verbs[i].name, verbs[i].about);
}

int main(int argc, char **argv)
{
	int err;

	if (argc < 2) {
		print_usage(stderr);
		return EXIT_BAD_INPUT;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		print_usage(stdout);
		return EXIT_DONE;
	}
	if (strcmp(argv[1], "--version") == 0) {
		puts("bw-edge " BW_VERSION);
		return EXIT_DONE;
	}
	err = port_init();
	if (err) {
		fprintf(stderr, "bw-edge: this machine cannot be used: %s\n", strerror(-err));
		return EXIT_CAPABILITY;
	}
	for (size_t i = 0; i < VERBS; i++) {
		if (strcmp(argv[1], verbs[i].name) == 0)
			return verbs[i].run(argc - 1, argv + 1);
	}
	fprintf(stderr, "bw-edge: unknown verb \"%s\" (see --help)\n", argv[1]);
	return EXIT_BAD_INPUT;
}
