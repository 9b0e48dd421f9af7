/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs of bw-rtdip that measure, each over RTDiP or UDP. */
#ifndef RTDIP_MEASURE_H
#define RTDIP_MEASURE_H

int verb_echo(int argc, char **argv);
int verb_latency(int argc, char **argv);
int verb_source(int argc, char **argv);
int verb_sink(int argc, char **argv);

#endif
