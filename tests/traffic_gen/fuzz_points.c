/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Fuzz target: the reader of files of names. Whatever the text, it refuses it with an error or returns points that a program may have.
 */
#include "events/points_file.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct schema_error error = { "" };
	struct bw_point_description *points;
	int64_t count = points_text_read("fuzz", (const char *)data, size, &points, &error);

	promise(count != 0 && (count > 0 || error.text[0] != '\0') && (count > 0) == (points != NULL));
	for (int64_t i = 0; i < count; i++)
		promise(events_description_check(&points[i]) == 0);
	if (count > 0)
		promise(events_descriptions_distinct(points, (uint32_t)count) == 0);
	free(points);
	return 0;
}
