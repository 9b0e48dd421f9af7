/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bw-accel: becomes a program that has the library of the user-mode stack loaded before its own ones. What the loader would
 * run without it, and without a word, is refused beforehand.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "accel/allow_list.h"
#include "accel/port_launch.h"
#include "accel/program_file.h"
#include "config/options.h"
#include "service/stackd.h"

#define TOOL "bw-accel"
#define LIBRARY "libbw-accel.so"
#define SHELL "/bin/sh" /* execvp(3) lets it run texts without a line `#!` */

#define SOCKET_VARIABLE "BW_ACCEL_SOCKET"
#define BUSY_POLL_VARIABLE "BW_ACCEL_BUSY_POLL_US"
#define ONLY_VARIABLE "BW_ACCEL_ONLY"
#define CONGESTION_VARIABLE "BW_ACCEL_CONGESTION"
#define PRELOAD_VARIABLE "LD_PRELOAD"

enum { SCRIPTS_MAX = 4, BUSY_POLL_MAX_US = 1000000, NUMBER_BYTES = 24 };

struct launch {
	const char *socket, *only, *congestion, *library;
	int64_t busy_poll_us; /* -1: as the environment has it */
	char path[LAUNCH_PATH_BYTES], library_path[LAUNCH_PATH_BYTES], socket_path[LAUNCH_PATH_BYTES];
	struct program_file library_file;
	bool by_shell; /* the program is a text without a line `#!` */
};

/* One line on stderr. Return the code. */
__attribute__((format(printf, 2, 3))) static int refuse(int code, const char *format, ...)
{
	va_list arguments;

	fputs(TOOL ": ", stderr);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	return code;
}

/* The command line. */

static const char about[] =
	"Run a program that the user-mode stack serves: " LIBRARY " is loaded into it and takes its sockets of TCP and UDP. Refused is\n"
	"what its loader would run without the library, and without a word: static programs, programs with rights of their own\n"
	"(set-user-ID, set-group-ID, capabilities), and those for another machine. What the program starts itself is not looked at.\n"
	"\n"
	"LIST: ENTRY[,ENTRY...], one of which is enough for a socket; the system's own stack keeps all others.\n"
	"ENTRY: [tcp:|udp:] and PORT, PORT-PORT or ADDRESS[/BITS]: 7000, tcp:5000-5100, 10.77.0.0/24, udp:fd00::/64.\n"
	"A port is that of either end; an address is that of the other end, so that a socket that listens needs its port there.\n";

/* How many words in front are options of this program, and whether `--` ends them. */
static int split(int argc, char **argv, bool *is_ended)
{
	int i = 1;

	*is_ended = false;
	while (i < argc && argv[i][0] == '-' && argv[i][1]) {
		*is_ended = strcmp(argv[i], "--") == 0;
		if (*is_ended)
			return i;
		/* All but --help have a value. */
		i += strncmp(argv[i], "--", 2) == 0 && strcmp(argv[i], "--help") != 0 && !strchr(argv[i], '=') ? 2 : 1;
	}
	return i < argc ? i : argc;
}

static int read_options(struct launch *launch, int argc, char **argv)
{
	const struct option options[] = {
		{ .name = "socket", .kind = OPTION_TEXT, .target = &launch->socket, .argument = "PATH",
		  .help = "of the service (default " SOCKET_VARIABLE ", else " STACKD_SOCKET ")" },
		{ .name = "busy-poll-us", .kind = OPTION_INT, .target = &launch->busy_poll_us, .min = 0, .max = BUSY_POLL_MAX_US,
		  .argument = "N", .help = "who waits looks for packets so long before it sleeps (default " BUSY_POLL_VARIABLE ", else 0)" },
		{ .name = "only", .kind = OPTION_TEXT, .target = &launch->only, .argument = "LIST",
		  .help = "take these sockets alone (default " ONLY_VARIABLE ", else all)" },
		{ .name = "congestion", .kind = OPTION_TEXT, .target = &launch->congestion, .argument = "cubic|bbr",
		  .help = "what says how much connections send (default " CONGESTION_VARIABLE ", else cubic)" },
		{ .name = "library", .kind = OPTION_TEXT, .target = &launch->library, .argument = "PATH",
		  .help = "of " LIBRARY " (default beside this program, else in ../lib)" },
		{ .name = NULL },
	};
	const struct command command = {
		.name = TOOL, .usage = "[options] [--] PROGRAM [ARGUMENTS]", .about = about, .options = options,
	};

	return options_parse(&command, argc, argv, NULL);
}

/* `--only` and the variable alike: what is wrong would accelerate nothing. */
static int check_only(const struct launch *launch)
{
	const char *name = launch->only ? "--only" : ONLY_VARIABLE, *text = launch->only ? launch->only : getenv(ONLY_VARIABLE);
	static const char grammar[] = "PORT, PORT-PORT or ADDRESS[/BITS] behind tcp:, udp: or nothing";
	struct allow_list list;
	const char *wrong;
	int err;

	if (launch->only && !*launch->only)
		return refuse(EXIT_BAD_INPUT, "--only: names nothing; all sockets are taken without it");
	err = allow_list_parse(text ? text : "", &list, &wrong);
	if (!err)
		return 0;
	if (err == -E2BIG)
		return refuse(EXIT_BAD_INPUT, "%s: more than %d entries", name, ALLOW_ENTRIES_MAX);
	return refuse(EXIT_BAD_INPUT, "%s: \"%.*s\" is %s; allowed: %s", name, (int)strcspn(wrong, ","), wrong,
		      err == -ERANGE ? "out of range (ports 1..65535, the second not below the first; bits 0..32 or 0..128)" : "no entry",
		      grammar);
}

static int check_congestion(const struct launch *launch)
{
	const char *name = launch->congestion ? "--congestion" : CONGESTION_VARIABLE;
	const char *text = launch->congestion ? launch->congestion : getenv(CONGESTION_VARIABLE);

	if (!text || (!*text && !launch->congestion) || strcmp(text, "cubic") == 0 || strcmp(text, "bbr") == 0)
		return 0;
	return refuse(EXIT_BAD_INPUT, "%s: \"%s\" is unknown; allowed: cubic, bbr", name, text);
}

/* The library. */

static int find_library(struct launch *launch)
{
	char own[LAUNCH_PATH_BYTES], beside[LAUNCH_PATH_BYTES + sizeof(LIBRARY) + 8], lib[sizeof(beside)];
	int err;

	if (launch->library) {
		err = launch_absolute(launch->library, launch->library_path);
		return err ? refuse(EXIT_BAD_INPUT, "--library: %s: %s", launch->library, strerror(-err)) : 0;
	}
	err = launch_own_folder(own);
	if (err)
		return refuse(EXIT_CAPABILITY, "/proc/self/exe: %s: name the library by --library", strerror(-err));
	snprintf(beside, sizeof(beside), "%s/" LIBRARY, own);
	snprintf(lib, sizeof(lib), "%s/../lib/" LIBRARY, own);
	if (!launch_absolute(beside, launch->library_path) || !launch_absolute(lib, launch->library_path))
		return 0;
	return refuse(EXIT_CAPABILITY, "no library: neither %s nor %s is there; name it by --library", beside, lib);
}

static int read_library(struct launch *launch)
{
	struct program_file *library = &launch->library_file;
	int err, code = launch->library ? EXIT_BAD_INPUT : EXIT_CAPABILITY;
	FILE *file;

	/* The loader takes them apart there, and replaces what begins with a dollar sign. */
	if (strpbrk(launch->library_path, ": $"))
		return refuse(code, "%s: cannot be preloaded: its path has a colon, a blank or a dollar sign",
			      launch->library_path);
	file = fopen(launch->library_path, "rb");
	if (!file)
		return refuse(code, "%s: %s", launch->library_path, strerror(errno));
	err = program_file_read(file, library);
	fclose(file);
	if (err || library->kind != PROGRAM_ELF || !library->is_shared || library->is_dynamic)
		return refuse(code, "%s: is no shared library", launch->library_path);
	return 0;
}

/* The program. */

static int check_program(struct launch *launch, const char *path, const char *whose, int scripts);

/* What a line `#! /usr/bin/env NAME` starts in the end; -S is let pass. Options and variables before NAME are not read. */
static int check_named_to_env(struct launch *launch, const struct program_file *script, const char *path, int scripts)
{
	const char *slash = strrchr(script->interpreter, '/'), *at = script->argument;
	char name[PROGRAM_LINE_BYTES], found[LAUNCH_PATH_BYTES];
	size_t bytes;

	if (strcmp(slash ? slash + 1 : script->interpreter, "env") != 0)
		return 0;
	if (strncmp(at, "-S", 2) == 0)
		at += 2 + strspn(at + 2, " \t");
	bytes = strcspn(at, " \t");
	memcpy(name, at, bytes);
	name[bytes] = '\0';
	if (!bytes || *name == '-' || strchr(name, '='))
		return 0;
	if (launch_find(name, found))
		return refuse(EXIT_BAD_INPUT, "%s: no program %s, which its first line names to env", path, name);
	return check_program(launch, found, path, scripts);
}

static int check_interpreter(struct launch *launch, const struct program_file *script, const char *path, int scripts)
{
	char named[PROGRAM_LINE_BYTES + sizeof("./")], interpreter[LAUNCH_PATH_BYTES];
	const char *name = script->kind == PROGRAM_TEXT ? SHELL : script->interpreter;
	int err;

	if (scripts == SCRIPTS_MAX)
		return refuse(EXIT_BAD_INPUT, "%s: more than %d scripts, each the interpreter of the one before", path, SCRIPTS_MAX);
	/* A name without a slash is that of a file here, not one of PATH. */
	snprintf(named, sizeof(named), "%s%s", strchr(name, '/') ? "" : "./", name);
	err = launch_find(named, interpreter);
	if (err)
		return refuse(EXIT_BAD_INPUT, "%s: its interpreter %s: %s", path, name, strerror(-err));
	err = check_program(launch, interpreter, path, scripts + 1);
	return err ? err : check_named_to_env(launch, script, path, scripts + 1);
}

static const char *why_not(const struct program_file *program, const struct program_file *library)
{
	const char *slash = strrchr(program->loader, '/');

	if (program->elf_class != library->elf_class || program->byte_order != library->byte_order ||
	    program->machine != library->machine)
		return "is for another machine than the library";
	if (!program->is_dynamic)
		return "is linked statically: nothing can be loaded into it";
	if (strncmp(slash ? slash + 1 : program->loader, "ld-musl", strlen("ld-musl")) == 0)
		return "is of another C library (musl) than the library";
	return NULL;
}

/* Return 0, or the exit code, with a line on stderr. `whose`: the script that it interprets; NULL: it is the program itself. */
static int check_program(struct launch *launch, const char *path, const char *whose, int scripts)
{
	struct program_file program;
	FILE *file = fopen(path, "rb");
	const char *why, *after = "";
	int err;

	if (!file)
		return refuse(EXIT_BAD_INPUT, "%s: it cannot be read, so that nobody can say how it starts: %s", path, strerror(errno));
	err = program_file_read(file, &program);
	fclose(file);
	if (err || program.kind == PROGRAM_OTHER)
		return refuse(EXIT_BAD_INPUT, "%s: is neither a program of this system nor a script", path);
	if (program.kind != PROGRAM_ELF) {
		launch->by_shell |= !whose && program.kind == PROGRAM_TEXT;
		return check_interpreter(launch, &program, path, scripts);
	}
	why = why_not(&program, &launch->library_file);
	if (!why) {
		why = launch_rights_of(path);
		after = ": its loader ignores libraries of who starts it";
	}
	if (!why)
		return 0;
	return refuse(EXIT_BAD_INPUT, "%s%s%s: %s%s", path, whose ? ", which runs " : "", whose ? whose : "", why, after);
}

static int find_program(struct launch *launch, const char *name)
{
	int err = launch_find(name, launch->path);

	if (!err)
		return 0;
	return refuse(EXIT_BAD_INPUT, "%s: %s%s", name, strerror(-err), err == -EACCES ? ": no file that may be executed" : "");
}

/* The service, and the start. */

static int find_service(struct launch *launch)
{
	const char *named = getenv(SOCKET_VARIABLE);
	const char *path = launch->socket ? launch->socket : named && *named ? named : STACKD_SOCKET;
	int err = launch_absolute(path, launch->socket_path);

	err = err ? err : launch_ask_service(launch->socket_path);
	if (!err)
		return 0;
	if (err == -ENAMETOOLONG)
		return refuse(EXIT_BAD_INPUT, "%s: too long for the path of a socket", path);
	return refuse(EXIT_CAPABILITY, "%s: nobody serves it (%s): start `bw-stackd serve`, or name its socket by --socket", path,
		      strerror(-err));
}

static int set_environment(const struct launch *launch)
{
	const char *before = getenv(PRELOAD_VARIABLE);
	size_t bytes = strlen(launch->library_path) + 1 + (before ? strlen(before) : 0) + 1;
	char *preload = malloc(bytes), number[NUMBER_BYTES];
	int err;

	if (!preload)
		return -ENOMEM;
	snprintf(preload, bytes, "%s%s%s", launch->library_path, before && *before ? ":" : "", before ? before : "");
	err = launch_set_variable(PRELOAD_VARIABLE, preload);
	free(preload);
	snprintf(number, sizeof(number), "%lld", (long long)launch->busy_poll_us);
	if (!err)
		err = launch_set_variable(SOCKET_VARIABLE, launch->socket_path);
	if (!err && launch->busy_poll_us >= 0)
		err = launch_set_variable(BUSY_POLL_VARIABLE, number);
	if (!err && launch->only)
		err = launch_set_variable(ONLY_VARIABLE, launch->only);
	if (!err && launch->congestion)
		err = launch_set_variable(CONGESTION_VARIABLE, launch->congestion);
	return err;
}

/* What execvp(3) gives a shell: the text's path in the place of the program's name. */
static char **words_of_shell(const struct launch *launch, int argc, char **argv)
{
	char **words = malloc(((size_t)argc + 2) * sizeof(*words));

	if (!words)
		return NULL;
	words[0] = (char *)SHELL;
	words[1] = (char *)launch->path;
	memcpy(words + 2, argv + 1, (size_t)argc * sizeof(*words)); /* with the NULL behind them */
	return words;
}

static int run(const struct launch *launch, int argc, char **argv)
{
	char **words = launch->by_shell ? words_of_shell(launch, argc, argv) : argv;
	const char *path = launch->by_shell ? SHELL : launch->path;
	int err = words ? set_environment(launch) : -ENOMEM;

	err = err ? err : launch_run(path, words);
	return refuse(EXIT_CAPABILITY, "%s: cannot be started: %s", launch->path, strerror(-err));
}

int main(int argc, char **argv)
{
	static struct launch launch = { .busy_poll_us = -1 }; /* static for its size */
	bool is_ended;
	int own = split(argc, argv, &is_ended), err = read_options(&launch, own, argv);

	if (err)
		return options_exit_code(err);
	argc -= own + is_ended;
	argv += own + is_ended;
	if (argc < 1)
		return refuse(EXIT_BAD_INPUT, "no PROGRAM is named (see --help)");
	err = check_only(&launch);
	err = err ? err : check_congestion(&launch);
	err = err ? err : find_library(&launch);
	err = err ? err : read_library(&launch);
	err = err ? err : find_program(&launch, argv[0]);
	err = err ? err : check_program(&launch, launch.path, NULL, 0);
	err = err ? err : find_service(&launch);
	return err ? err : run(&launch, argc, argv);
}
