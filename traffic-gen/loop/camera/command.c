/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/camera/command.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "loop/camera/picture.h"

size_t command_print(const struct loop_command *command, char line[static COMMAND_BYTES_MAX + 1])
{
	int length = snprintf(line, COMMAND_BYTES_MAX + 1, "look %" PRIu32 " %" PRId32 " %" PRId32 " %" PRId32 "\n", command->picture,
			      command->look.x_q8, command->look.y_q8, command->look.zoom_q8);

	return (size_t)length;
}

/* A decimal number in its one form. Moves *at behind it. */
static bool take_digits(const char **at, const char *end, int64_t *number)
{
	const char *digit = *at;
	bool is_negative = digit < end && *digit == '-';
	int64_t value = 0;
	const char *first = digit += is_negative;

	for (; digit < end && *digit >= '0' && *digit <= '9'; digit++) {
		if (digit - first == 10)
			return false;
		value = value * 10 + (*digit - '0');
	}
	if (digit == first || (*first == '0' && (digit - first > 1 || is_negative)))
		return false;
	*number = is_negative ? -value : value;
	*at = digit;
	return true;
}

/* Likewise, and the space behind it. */
static bool take_number(const char **at, const char *end, int64_t *number)
{
	if (!take_digits(at, end, number) || *at == end || **at != ' ')
		return false;
	++*at;
	return true;
}

const char *command_parse(const char *line, size_t length_bytes, struct loop_command *command)
{
	static const char verb[] = "look ";
	const char *at = line, *end = line + length_bytes;
	int64_t picture, x_q8, y_q8, zoom_q8;

	if (length_bytes > COMMAND_BYTES_MAX)
		return "is longer than 127 bytes";
	if (!length_bytes || end[-1] != '\n')
		return "has no end of the line";
	if (length_bytes < sizeof(verb) - 1 || memcmp(line, verb, sizeof(verb) - 1) != 0)
		return "does not begin with \"look \"";
	at += sizeof(verb) - 1;
	if (!take_number(&at, end, &picture) || picture < 0 || picture > UINT32_MAX)
		return "has no picture of 0 to 4294967295";
	if (!take_number(&at, end, &x_q8) || x_q8 < -PLACE_MAX_Q8 || x_q8 > PLACE_MAX_Q8)
		return "has no x of -2097152 to 2097152";
	if (!take_number(&at, end, &y_q8) || y_q8 < -PLACE_MAX_Q8 || y_q8 > PLACE_MAX_Q8)
		return "has no y of -2097152 to 2097152";
	if (!take_digits(&at, end, &zoom_q8) || zoom_q8 < ZOOM_MIN_Q8 || zoom_q8 > ZOOM_MAX_Q8)
		return "has no zoom of 64 to 4096 at its end";
	if (*at != '\n') /* the line has one */
		return "has something behind the zoom";
	if (at + 1 != end)
		return "goes on behind the end of the line";
	*command = (struct loop_command){ (uint32_t)picture, { (int32_t)x_q8, (int32_t)y_q8, (int32_t)zoom_q8 } };
	return NULL;
}
