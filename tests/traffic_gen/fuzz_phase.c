/* SPDX-License-Identifier: Apache-2.0 */
/** Fuzz target: a line that a controller sends to a program with phases. What is taken has a name, and parameters within the line. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "phase/bwphase.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bw_phase_line found;
	char *line = malloc(size + 1);

	if (!line)
		return 0;
	memcpy(line, data, size);
	line[size] = '\0';
	if (bw_phase_parse(line, &found)) {
		promise(strlen(found.name) > 0 && strlen(found.name) < BW_PHASE_NAME_BYTES);
		promise(found.parameters > line && found.parameters + found.parameters_bytes < line + strlen(line));
		promise(found.parameters[0] == '{' && found.parameters[found.parameters_bytes - 1] == '}');
	}
	free(line);
	return 0;
}
