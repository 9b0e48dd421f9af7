/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs of bw-clock, one a file. argv[0] is the verb; the result is the exit code of the process (options.h). */
#ifndef BW_CLOCK_VERBS_H
#define BW_CLOCK_VERBS_H

int verb_compare(int argc, char **argv);
int verb_latency(int argc, char **argv);
int verb_card(int argc, char **argv);

int card_serve(int argc, char **argv);
int card_publish(int argc, char **argv);
int card_trials(int argc, char **argv);

#endif
