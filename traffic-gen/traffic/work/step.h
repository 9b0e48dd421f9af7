/* SPDX-License-Identifier: Apache-2.0 */
/* What one process of the verb work does: read files, compute, write files. */
#ifndef BW_STEP_H
#define BW_STEP_H

#include <stdbool.h>
#include <stdint.h>

enum { STEP_PATH_BYTES = 4096 };

/** What each process does. */
struct step {
	const char *folder;
	int64_t cpu_ms;                  /* of its own, reading included; 0: it does not compute */
	int64_t read_files, read_bytes;  /* how many, and bytes of each */
	int64_t write_files, write_bytes;
	bool sync;                       /* each written file is on the disk before the next */
};

/** Write the files that all processes read. @return 0 or -errno */
int step_write_inputs(const struct step *step);
/** Do what one process does. @param slot  of those that run at once: its files are its own. @return 0 or -errno */
int step_run(const struct step *step, int64_t slot);
/** Remove all files, of so many slots, and on Linux the folder, where nothing else is in it. */
void step_remove_files(const struct step *step, int64_t slots);

#endif
