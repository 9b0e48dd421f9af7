/* SPDX-License-Identifier: Apache-2.0 */
/** Fuzz target: a file of symmetric keys. It is refused with one line, or a key has the size of its type. */
#include <errno.h>
#include <string.h>

#include "../traffic_gen/fuzz.h"
#include "timeservice/keys.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* A copy whose end is found by the sanitizer. */
	char *text = malloc(size + !size);

	promise(text != NULL);
	if (size)
		memcpy(text, data, size);
	for (uint32_t id = 1; id <= 4; id++) {
		char error[KEYS_ERROR_BYTES] = "";
		struct key key = { 0 };
		int err = keys_find("keys", text, size, id, &key, error);

		promise(err == 0 || err == -ENOENT || err == -EINVAL);
		promise(err ? *error && !strchr(error, '\n') : key.size_bytes == 16 || key.size_bytes == 32);
	}
	free(text);
	return 0;
}
