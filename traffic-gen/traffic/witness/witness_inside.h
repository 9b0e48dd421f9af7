/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A witness in the process of the program beside which it watches. One in a process of its own makes a target change between
 * two address spaces at each of its wake-ups, and what emulates the target then looks all translations up again: that cost a
 * tenth of an emulator's time.
 */
#ifndef BW_WITNESS_INSIDE_H
#define BW_WITNESS_INSIDE_H

struct witness_inside;

/**
 * Start to watch all CPUs of this machine, above all else.
 *
 * @param path        the answer goes there, as of the verb witness
 * @param tai_utc_s   TAI - UTC where the kernel does not know it
 * @param inside_out  end it with witness_inside_finish()
 * @return 0 or -errno, with a line on stderr
 */
int witness_inside_start(const char *path, int tai_utc_s, struct witness_inside **inside_out);
/** End it and write the answer. NULL is harmless. @return 0 or -errno, with a line on stderr */
int witness_inside_finish(struct witness_inside *inside);

#endif
