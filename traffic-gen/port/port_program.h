/* SPDX-License-Identifier: Apache-2.0 */
/* Port layer: programs that this one starts and waits for, and files on their way to the disk. */
#ifndef BW_PORT_PROGRAM_H
#define BW_PORT_PROGRAM_H

#include <stdint.h>
#include <stdio.h>

/**
 * Start this program again, and wait for its end. Several threads may do so at once.
 *
 * @param argv    from its name on, ended by NULL; what it writes goes where this one's goes
 * @param cpu_ns  receives the CPU time that it took
 * @return its exit code, 128 + the signal that ended it, or -errno: it was not started
 */
int port_program_run_self(char *const *argv, int64_t *cpu_ns);

/** Hand a file's bytes to the disk, where it lies on one. @return 0 or -errno */
int port_file_sync(FILE *file);

#endif
