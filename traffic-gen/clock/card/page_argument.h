/* SPDX-License-Identifier: Apache-2.0 */
/* The option --page NAME=FILE of the verbs that serve pages of guests. */
#ifndef BW_CLOCK_PAGE_ARGUMENT_H
#define BW_CLOCK_PAGE_ARGUMENT_H

#include "config/options.h"
#include "clock/card/page.h"

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

#endif
