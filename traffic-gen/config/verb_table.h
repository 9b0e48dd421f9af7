/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs of a tool as a table: its usage is written from it, and the first argument chooses the row. */
#ifndef BW_VERB_TABLE_H
#define BW_VERB_TABLE_H

struct verb {
	const char *name;                  /* NULL ends a table */
	int (*run)(int argc, char **argv); /* argv[0] is the verb; returns the exit code of the process (options.h) */
	const char *about;
};

struct verb_table {
	const char *name; /* "bw-traffic" */
	const struct verb *verbs;
	const char *more;   /* below the verbs in the usage; NULL: nothing */
	int (*begin)(void); /* before a verb runs: 0, or -errno: this machine cannot be used. NULL: nothing to do */
};

/** Run the verb that argv[1] names, or answer --help and --version. @return exit code of the process */
int verb_table_run(const struct verb_table *table, int argc, char **argv);

#endif
