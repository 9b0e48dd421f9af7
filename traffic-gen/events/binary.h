/* SPDX-License-Identifier: Apache-2.0 */
/* Points in the file of a program or library: ELF (Linux) and PE (Windows), of any architecture that counts from the little end. */
#ifndef BW_EVENTS_BINARY_H
#define BW_EVENTS_BINARY_H

#include "events/bwevents.h"

/**
 * Find the points of a program.
 *
 * @param descriptions_out  receives count descriptions, each checked; the caller frees them
 * @return their number; 0: it has none; -ENOEXEC: neither ELF nor PE; -EBADMSG: damaged; -EXDEV: of the other byte order; or -errno
 */
int64_t binary_points(const char *path, struct bw_point_description **descriptions_out);

#endif
