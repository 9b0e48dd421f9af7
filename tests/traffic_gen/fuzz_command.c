/* SPDX-License-Identifier: Apache-2.0 */
/** Fuzz target: a command to the camera. What is taken is the same again once it is printed. */
#include <string.h>

#include "fuzz.h"
#include "loop/camera/command.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char again[COMMAND_BYTES_MAX + 1];
	struct loop_command found;

	if (command_parse((const char *)data, size, &found))
		return 0;
	promise(size <= COMMAND_BYTES_MAX && command_print(&found, again) == size);
	promise(memcmp(again, data, size) == 0);
	return 0;
}
