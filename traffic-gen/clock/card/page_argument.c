/* SPDX-License-Identifier: Apache-2.0 */
#include "clock/card/page_argument.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int page_argument(const char *tool, const struct option_texts *texts, int index, char name[CARD_SOURCE_BYTES],
		  const char **path)
{
	const char *text = texts->texts[index];
	const char *equals = strchr(text, '=');
	size_t length = equals ? (size_t)(equals - text) : 0;

	if (length == 0 || length >= CARD_SOURCE_BYTES || !equals[1] || strcspn(text, " \t\n\"\\") < length ||
	    strncmp(text, "host=", 5) == 0) {
		fprintf(stderr, "%s: --page: \"%s\": NAME=FILE, name of 1..15 characters, not \"host\"\n", tool, text);
		return -EINVAL;
	}
	memcpy(name, text, length);
	name[length] = '\0';
	for (int i = 0; i < index; i++) {
		if (strncmp(texts->texts[i], text, length + 1) == 0) { /* with the equals sign */
			fprintf(stderr, "%s: --page: \"%s\" is given twice\n", tool, name);
			return -EINVAL;
		}
	}
	*path = equals + 1;
	return 0;
}

int page_serve(const char *tool, const char *path, size_t size_bytes, int lock, struct port_page *mapping)
{
	int err = port_page_map(path, size_bytes, true, mapping);

	if (!err)
		err = port_page_lock(mapping, lock, 0);
	if (err)
		fprintf(stderr, "%s: %s: %s\n", tool, path,
			err == -EBUSY   ? "another server has it" :
			err == -ENOTSUP ? "this system has no shared pages" :
					  strerror(-err));
	return err;
}
