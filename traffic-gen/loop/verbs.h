/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs of bw-loop, one a folder. argv[0] is the verb; the result is the exit code of the process (options.h). */
#ifndef BW_LOOP_VERBS_H
#define BW_LOOP_VERBS_H

int verb_ring(int argc, char **argv);
int verb_camera(int argc, char **argv);
int verb_tracker(int argc, char **argv);
int verb_display(int argc, char **argv);
int verb_render(int argc, char **argv);
int verb_where(int argc, char **argv);

#endif
