/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs of bw-traffic, one a file. argv[0] is the verb; the result is the exit code of the process (options.h). */
#ifndef BW_VERBS_H
#define BW_VERBS_H

int verb_check(int argc, char **argv);
int verb_send(int argc, char **argv);
int verb_recv(int argc, char **argv);
int verb_offset(int argc, char **argv);
int verb_echo(int argc, char **argv);
int verb_roundtrip(int argc, char **argv);
int verb_stimulus(int argc, char **argv);
int verb_bulk(int argc, char **argv);
int verb_work(int argc, char **argv);
int verb_witness(int argc, char **argv);

#endif
