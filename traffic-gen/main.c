/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "options.h"
#include "port.h"
#include "verbs.h"

static const struct verb {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *about;
} verbs[] = {
	{ "check", verb_check, "validate a pattern and print its streams" },
	{ "send", verb_send, "play the streams of producers" },
	{ "recv", verb_recv, "receive all streams; count, time and judge each message" },
	{ "offset", verb_offset, "measure, or serve, the offset between two clocks" },
	{ "witness", verb_witness, "record when this machine stood still" },
};

static void print_usage(FILE *out)
{
	fputs("usage: bw-traffic VERB [options]; bw-traffic VERB --help explains\n\n", out);
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		fprintf(out, "  %-8s %s\n", verbs[i].name, verbs[i].about);
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
		puts("bw-traffic " BW_VERSION);
		return EXIT_DONE;
	}
	err = port_init();
	if (err) {
		fprintf(stderr, "bw-traffic: the network cannot be used: %s\n", strerror(-err));
		return EXIT_CAPABILITY;
	}
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		if (strcmp(argv[1], verbs[i].name) == 0)
			return verbs[i].run(argc - 1, argv + 1);
	}
	fprintf(stderr, "bw-traffic: unknown verb \"%s\" (see --help)\n", argv[1]);
	return EXIT_BAD_INPUT;
}
