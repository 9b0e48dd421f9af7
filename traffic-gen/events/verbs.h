/* SPDX-License-Identifier: Apache-2.0 */
/* Verbs of bw-events, and what they share. */
#ifndef BW_EVENTS_VERBS_H
#define BW_EVENTS_VERBS_H

#include "events/layout.h"

int verb_list(int argc, char **argv);
int verb_record(int argc, char **argv);
int verb_on(int argc, char **argv);
int verb_off(int argc, char **argv);
int verb_show(int argc, char **argv);
int verb_trigger(int argc, char **argv);

/** In words: "event", "data", … */
const char *kind_name(uint32_t kind);

/**
 * Add patterns to a stream's list.
 *
 * @param patterns  "GROUP.NAME" with * and ?, or "GROUP" for all of it, or "-" before it
 * @param sign      '+' or '-': of those that have none
 * @return 0, or -1: one line was written to stderr
 */
int wanted_add(const char *tool, char wanted[EVENTS_WANTED_BYTES], const char *const *patterns, int count, char sign);

#endif
