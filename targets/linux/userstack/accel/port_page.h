/* SPDX-License-Identifier: Apache-2.0 */
/* The page that tells the service what this program's stack is doing: service/program_page.h. */
#ifndef BW_ACCEL_PAGE_H
#define BW_ACCEL_PAGE_H

struct rings;

/** Make the page. @return a descriptor for the service, which the caller closes, or -errno: there is none */
int page_begin(void);
/** Write all of it; called with the lock of port_wait.h. */
void page_fill(const struct rings *rings);

/** In a process that was forked: the page is the parent's, and is not mapped here. */
void page_forget(void);

#endif
