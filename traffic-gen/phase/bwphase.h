/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that take part in an experiment: they register a function for each of its phases that they have work in, and hand over
 * control. The experiment's controller calls one phase after the other, and goes on when every program has returned from it. It
 * talks over stdin and stdout, a line each way a phase, so that a program works alike by SSH, in a network namespace and by hand:
 *
 *   static int listen_now(void *context, const char *parameters, char *reason, size_t reason_bytes) { … return 0; }
 *
 *   int main(void)
 *   {
 *       bw_phase_register("listen", listen_now, NULL);
 *       return bw_phase_run();
 *   }
 *
 * Compile bwphase.c with the program: it needs C99 and nothing else. Both files stand alone. What else the program prints goes to
 * stderr, or to stdout as whole lines; it is kept with the results. docs/experiments.md says more.
 */
#ifndef BWPHASE_H
#define BWPHASE_H

#include <stdbool.h>
#include <stddef.h>

enum { BW_PHASES_MAX = 64, BW_PHASE_NAME_BYTES = 64, BW_PHASE_LINE_BYTES = 65536, BW_PHASE_REASON_BYTES = 512 };

/**
 * The work of a phase.
 *
 * @param parameters    of the file of the experiment for this phase: the text of a JSON object, "{}" where there are none
 * @param reason        receives why it failed; empty before
 * @param reason_bytes  its room
 * @return 0: done; any other number: failed, the experiment ends
 */
typedef int bw_phase_function(void *context, const char *parameters, char *reason, size_t reason_bytes);

/** Have a function called in a phase. @param name  of a-z, 0-9 and hyphen @return 0, or -1: no such name, registered twice, or too many */
int bw_phase_register(const char *name, bw_phase_function *function, void *context);

/** Report a number with the answer of the phase that is being worked on: the experiment may hold it against a limit. @return 0, or -1: too many */
int bw_phase_value(const char *key, double value);

/** Hand over control. @return exit code of the program: 0 when the controller has no more phases, 2: it said what is no phase */
int bw_phase_run(void);

/* What a line of the controller says. */
struct bw_phase_line {
	char name[BW_PHASE_NAME_BYTES];
	const char *parameters; /* within the line */
	size_t parameters_bytes;
};

/** Read a line of the controller, without its line feed. @return whether it is one */
bool bw_phase_parse(const char *line, struct bw_phase_line *found);

#endif
