/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of guests, for the verbs that serve them: the option --page NAME=FILE, and the file. */
#ifndef BW_CLOCK_PAGE_ARGUMENT_H
#define BW_CLOCK_PAGE_ARGUMENT_H

#include "config/options.h"
#include "clock/card/page.h"
#include "port/port_clock.h"

/**
 * Read one of the --page options.
 *
 * @param tool   names the verb in messages
 * @param texts  all that were given
 * @param index  which of them
 * @param name   receives the guest's name
 * @param path   receives a pointer into the text
 * @return 0, or -EINVAL with a line on stderr: not NAME=FILE, or an earlier one has this name
 */
int page_argument(const char *tool, const struct option_texts *texts, int index, char name[CARD_SOURCE_BYTES],
		  const char **path);

/**
 * Map the file behind a page and lock it, against other servers.
 *
 * @param tool  names the verb in messages
 * @param lock  which lock of the file: enum card_lock or that of another kind of page
 * @return 0, or -errno with a line on stderr
 */
int page_serve(const char *tool, const char *path, size_t size_bytes, int lock, struct port_page *mapping);

#endif
