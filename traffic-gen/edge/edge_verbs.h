/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs of bw-edge, one a file. argv[0] is the verb; the result is the exit code of the process (options.h). */
#ifndef BW_EDGE_VERBS_H
#define BW_EDGE_VERBS_H

int verb_serve(int argc, char **argv);
int verb_follow_phc(int argc, char **argv);
int verb_output(int argc, char **argv);
int verb_capture(int argc, char **argv);
int verb_run(int argc, char **argv);
int verb_latch(int argc, char **argv);

#endif
