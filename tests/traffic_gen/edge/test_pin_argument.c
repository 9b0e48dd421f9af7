/* SPDX-License-Identifier: Apache-2.0 */
/* What follows the colon of a pin's name. */
#include <errno.h>

#include "check.h"
#include "edge/pins/pin_argument.h"

static const char *const words[] = { "rising", "both", NULL };

static int64_t number, word;

static int parse(const char *text, char *path, char *error)
{
	const struct pin_key keys[] = {
		{ .name = "pin", .value = &number, .min = 0, .max = 255 },
		{ .name = "edges", .value = &word, .words = words },
		{ .name = NULL },
	};

	number = -1;
	word = 0;
	error[0] = '\0';
	return pin_argument_parse(text, path, keys, error, 200);
}

int main(void)
{
	char path[PIN_PATH_BYTES], error[200], text[PIN_PATH_BYTES + 10];

	CHECK_INT(parse("/dev/ptp1", path, error), 0);
	CHECK_TEXT(path, "/dev/ptp1");
	CHECK_INT(number, -1);
	CHECK_INT(parse("/dev/ptp1,edges=both,pin=17", path, error), 0);
	CHECK_INT(number, 17);
	CHECK_INT(word, 1);
	CHECK_INT(parse("/dev/ptp1,pin=256", path, error), -EINVAL);
	CHECK_TEXT(error, "pin: must be in 0..255, found \"256\"");
	CHECK_INT(parse("/dev/ptp1,pin=", path, error), -EINVAL);
	CHECK_INT(parse("/dev/ptp1,pin", path, error), -EINVAL);
	CHECK_TEXT(error, "unknown \"pin\"");
	CHECK_INT(parse("/dev/ptp1,line=3", path, error), -EINVAL);
	CHECK_TEXT(error, "unknown \"line=3\"");
	CHECK_INT(parse("/dev/ptp1,edges=falling", path, error), -EINVAL);
	CHECK_TEXT(error, "edges: unknown \"falling\"; allowed: rising both");
	CHECK_INT(parse("/dev/ptp1,", path, error), -EINVAL);
	CHECK_INT(parse(",pin=1", path, error), -EINVAL);
	memset(text, 'x', sizeof(text));
	text[PIN_PATH_BYTES] = '\0';
	CHECK_INT(parse(text, path, error), -EINVAL);
	text[PIN_PATH_BYTES - 1] = '\0';
	CHECK_INT(parse(text, path, error), 0);
	CHECK_INT(parse("/dev/ptp1,pin=00000000000000000000000000000000000001", path, error), -EINVAL);
	CHECK_TEXT(error, "pin: too long");
	return check_result();
}
