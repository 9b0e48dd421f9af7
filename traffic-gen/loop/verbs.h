/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs of bw-loop, one a folder. argv[0] is the verb; the result is the exit code of the process (options.h). */
#ifndef BW_LOOP_VERBS_H
#define BW_LOOP_VERBS_H

#include <stddef.h>
#include <string.h>

int verb_ring(int argc, char **argv);
int verb_camera(int argc, char **argv);
int verb_tracker(int argc, char **argv);
int verb_display(int argc, char **argv);
int verb_render(int argc, char **argv);
int verb_where(int argc, char **argv);

/**
 * The words of a command behind the last option of a verb.
 *
 * @param name  of the option: "--program"
 * @param own  receives how many words there are before it
 * @return NULL: it is not there
 */
static inline char *const *verb_command(int argc, char **argv, const char *name, int *own)
{
	for (*own = 1; *own < argc; ++*own)
		if (strcmp(argv[*own], name) == 0)
			return argv + *own + 1;
	return NULL;
}

#endif
