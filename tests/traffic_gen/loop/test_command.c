/* SPDX-License-Identifier: Apache-2.0 */
/** Commands to the camera: one form of each, and what is refused, with its reason. */
#include <string.h>

#include "../check.h"
#include "loop/camera/command.h"

static const char *reason_of(const char *line, size_t length_bytes)
{
	struct loop_command found = { .picture = 77 };
	const char *refused = command_parse(line, length_bytes, &found);

	if (refused)
		CHECK_INT(found.picture, 77);
	return refused ? refused : "taken";
}

static void refuse(const char *line, const char *reason)
{
	const char *found = reason_of(line, strlen(line));

	CHECK_THAT(strcmp(found, reason) == 0, "\"%s\" %s, not %s", line, found, reason);
}

static void test_a_line(void)
{
	static const char line[] = "look 4294967295 -2097152 393216 4096\n";
	char again[COMMAND_BYTES_MAX + 1];
	struct loop_command found;

	CHECK(!command_parse(line, strlen(line), &found));
	CHECK_INT(found.picture, 4294967295);
	CHECK_INT(found.look.x_q8, -2097152);
	CHECK_INT(found.look.y_q8, 393216);
	CHECK_INT(found.look.zoom_q8, 4096);
	CHECK_INT(command_print(&found, again), strlen(line));
	CHECK_TEXT(again, line);
	CHECK(!command_parse("look 0 0 0 64\n", 14, &found));
	CHECK_INT(found.look.zoom_q8, 64);
}

static void test_what_is_none(void)
{
	static const char begin[] = "does not begin with \"look \"", picture[] = "has no picture of 0 to 4294967295";
	static const char x[] = "has no x of -2097152 to 2097152", y[] = "has no y of -2097152 to 2097152";
	static const char zoom[] = "has no zoom of 64 to 4096 at its end", end[] = "has no end of the line";
	static const char behind[] = "has something behind the zoom";
	char longest[COMMAND_BYTES_MAX + 2];

	refuse("", end);
	refuse("look 1 2 3 256", end);
	refuse("look 1 2 3 256\nx", end);
	refuse("\n", begin);
	refuse("look\n", begin);
	refuse("Look 1 2 3 256\n", begin);
	refuse(" look 1 2 3 256\n", begin);
	refuse("look  1 2 3 256\n", picture);
	refuse("look -1 2 3 256\n", picture);
	refuse("look +1 2 3 256\n", picture);
	refuse("look 01 2 3 256\n", picture);
	refuse("look 4294967296 2 3 256\n", picture);
	refuse("look 18446744073709551617 2 3 256\n", picture);
	refuse("look 1\n", picture);
	refuse("look 1 -0 3 256\n", x);
	refuse("look 1 - 3 256\n", x);
	refuse("look 1 2097153 3 256\n", x);
	refuse("look 1 0x2 3 256\n", x);
	refuse("look 1 2\t3 256\n", x);
	refuse("look 1 2 -2097153 256\n", y);
	refuse("look 1 2 3.0 256\n", y);
	refuse("look 1 2 3\n", y);
	refuse("look 1 2 3 \n", zoom);
	refuse("look 1 2 3 63\n", zoom);
	refuse("look 1 2 3 4097\n", zoom);
	refuse("look 1 2 3 256 \n", behind);
	refuse("look 1 2 3 256\r\n", behind);
	refuse("look 1 2 3 256 4\n", behind);
	refuse("look 1 2 3 256.5\n", behind);
	refuse("look 1 2 3 0256\n", zoom);
	refuse("look 1 2 3 -\n", zoom);
	refuse("look 1 2 3 40960 \n", zoom);
	refuse("look 1 2 3 256\n\n", "goes on behind the end of the line");
	refuse("look 1 2 3 256\nlook 1 2 3 256\n", "goes on behind the end of the line");
	CHECK_TEXT(reason_of("look 1 2\0003 256\n", 15), x);
	CHECK_TEXT(reason_of("look 1 2 3 256\0\n", 16), behind);
	memset(longest, ' ', sizeof(longest));
	memcpy(longest, "look 1 2 3 256", 14);
	longest[COMMAND_BYTES_MAX] = '\n';
	CHECK_TEXT(reason_of(longest, COMMAND_BYTES_MAX + 1), "is longer than 127 bytes");
	longest[COMMAND_BYTES_MAX - 1] = '\n';
	CHECK_TEXT(reason_of(longest, COMMAND_BYTES_MAX), behind);
}

int main(void)
{
	test_a_line();
	test_what_is_none();
	return check_result();
}
