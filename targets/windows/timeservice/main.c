/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bw-timed for Windows: the time service on a console, or as a service of the system
 *
 *   bw-timed [--console] OPTIONS   run here, until Ctrl-C
 *   bw-timed install OPTIONS       make the service; it gets these options at every start
 *   bw-timed start|stop|uninstall
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/options.h"
#include "port_service.h"
#include "timeservice/settings.h"
#include "timeservice/timed.h"

#define FOLDER "C:\\Program Files\\Benchwright\\time"
#define LOG_FILE FOLDER "\\bw-timed.ndjson"

static int done(const char *verb, unsigned long err)
{
	char text[512];

	if (!err)
		return EXIT_DONE;
	fprintf(stderr, TIMED_TOOL ": %s: %s\n", verb, port_service_error(err, text, sizeof(text)));
	return EXIT_CAPABILITY;
}

/*
 * Add an argument to a command line as CommandLineToArgvW takes it apart: in quotes, backslashes before a quote doubled. Returns false
 * where it does not fit.
 */
static bool add_argument(char *line, size_t size_bytes, const char *argument)
{
	size_t used = strlen(line), backslashes = 0;

	if (used + 2 * strlen(argument) + 4 > size_bytes)
		return false;
	if (used)
		line[used++] = ' ';
	line[used++] = '"';
	for (const char *at = argument; *at; at++) {
		backslashes = *at == '\\' ? backslashes + 1 : 0;
		if (*at == '"') {
			line[used] = '\0';
			return false; /* no option of this program has one */
		}
		line[used++] = *at;
	}
	while (backslashes--)
		line[used++] = '\\';
	line[used++] = '"';
	line[used] = '\0';
	return true;
}

/* Check the options as the service will, and keep them. Returns an exit code. */
static int install(int argc, char **argv)
{
	static char arguments[SERVICE_TEXT_BYTES];
	struct settings *settings = calloc(1, sizeof(*settings));
	int code = EXIT_CAPABILITY;

	if (settings) {
		*settings = settings_default();
		code = settings_parse(settings, argc, argv);
	}
	if (code >= 0) {
		free(settings);
		return code;
	}
	for (int i = 1; i < argc; i++) {
		if (!add_argument(arguments, sizeof(arguments), argv[i])) {
			fprintf(stderr, TIMED_TOOL ": install: an argument is too long, or has a quotation mark in it\n");
			free(settings);
			return EXIT_BAD_INPUT;
		}
	}
	/* A service has no stdout. */
	if (!settings->log[0] && (!add_argument(arguments, sizeof(arguments), "--log") ||
				  !add_argument(arguments, sizeof(arguments), LOG_FILE)))
		code = EXIT_BAD_INPUT;
	free(settings);
	if (code == EXIT_BAD_INPUT)
		return code;
	code = done("install", port_service_install(&(struct service_facts){
				       .name = TIMED_TOOL,
				       .shown = "Benchwright time service",
				       .about = "Tells programs UTC and its error bound by the processor's counter, from NTP servers.",
				       .arguments = arguments,
			       }));
	/* After the service: its identity is known then. */
	return code ? code : done("install: " FOLDER, port_service_folder(FOLDER, TIMED_TOOL));
}

int main(int argc, char **argv)
{
	const char *verb = argc > 1 ? argv[1] : "";

	if (strcmp(verb, "install") == 0)
		return install(argc - 1, argv + 1);
	if (strcmp(verb, "service") == 0)
		return done("service", port_service_run(TIMED_TOOL, timed_main, timed_restart_helps, argc - 1, argv + 1));
	if (argc == 2 && strcmp(verb, "uninstall") == 0)
		return done(verb, port_service_uninstall(TIMED_TOOL));
	if (argc == 2 && strcmp(verb, "start") == 0)
		return done(verb, port_service_start(TIMED_TOOL));
	if (argc == 2 && strcmp(verb, "stop") == 0)
		return done(verb, port_service_stop(TIMED_TOOL));
	if (strcmp(verb, "--console") == 0)
		return timed_main(argc - 1, argv + 1);
	return timed_main(argc, argv);
}
