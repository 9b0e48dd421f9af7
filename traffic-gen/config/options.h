/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command lines: one table row an option. Numbers are read strictly (decimal, whole text, range), unknown options and
 * surplus arguments are refused, and --help is written from the same table.
 */
#ifndef BW_OPTIONS_H
#define BW_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum exit_code {
	EXIT_DONE = 0,
	EXIT_BAD_INPUT = 2,  /* arguments, pattern or plan: one line on stderr */
	EXIT_CAPABILITY = 3, /* this machine lacks something: one line on stderr */
	EXIT_INVALID = 4,    /* the measurement is invalid or incomplete: the result says why */
	EXIT_FAULT = 5,      /* something failed that had worked: one line on stderr */
};

enum { OPTION_LIST_MAX = 1024 };

/* A list of numbers ("1,3,5"), or all. */
struct option_list {
	bool all;
	int count;
	int values[OPTION_LIST_MAX];
};

/* Texts of an option that may be repeated. */
struct option_texts {
	const char **texts; /* room entries */
	int room, count;
};

enum option_kind {
	OPTION_FLAG, /* bool: --name */
	OPTION_INT,  /* int64_t: --name N */
	OPTION_LIST, /* struct option_list: --name N[,N…] */
	OPTION_TEXT, /* const char *: --name TEXT */
	OPTION_TEXTS, /* struct option_texts: --name TEXT, repeated */
};

struct option {
	const char *name;     /* without the dashes; NULL ends a table */
	enum option_kind kind;
	void *target;         /* set when the option is given; holds the default before */
	int64_t min, max;     /* of each number, inclusive */
	const char *argument; /* word for the argument in --help; NULL of flags */
	const char *help;
	bool list_all;        /* OPTION_LIST: "all" is allowed */
};

/* A verb's command line. */
struct command {
	const char *name;         /* "bw-traffic send" */
	const char *usage;        /* "PLAN --producer N[,N…]|all" */
	const char *about;        /* one or more lines, each ended by a newline */
	const struct option *options;
	int positional_min, positional_max;
};

/**
 * Read a decimal number: digits with an optional minus sign, nothing before or after.
 *
 * @return 0, -EINVAL (not a number), or -ERANGE (outside min..max); value untouched on error
 */
int option_parse_int(const char *text, int64_t min, int64_t max, int64_t *value);

/**
 * Read a command line; argv[0] is the verb.
 *
 * @param positionals  receives pointers into argv, positional_max entries
 * @return number of positionals; -1: --help was asked for and written to stdout; -EINVAL: refused, one line was
 *         written to stderr
 */
int options_parse(const struct command *command, int argc, char **argv, const char **positionals);

/** Refuse an option's text (NULL: it was not given) with one line on stderr. @return EXIT_BAD_INPUT */
int option_refuse(const char *tool, const char *option, const char *text, const char *needed);

/** What is printed is the result: where it cannot be written there is none. @return the exit code, EXIT_CAPABILITY for EXIT_DONE */
int exit_code_if_written(const char *name, int code);

/** End code for a negative result of options_parse. */
int options_exit_code(int parsed);

#endif
