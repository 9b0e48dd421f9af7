/* SPDX-License-Identifier: Apache-2.0 */
/* What follows the colon of a pin's name: a path, then KEY=NUMBER or KEY=WORD, separated by commas. Pure. */
#ifndef BW_EDGE_PIN_ARGUMENT_H
#define BW_EDGE_PIN_ARGUMENT_H

#include <stddef.h>
#include <stdint.h>

enum { PIN_PATH_BYTES = 256 };

struct pin_key {
	const char *name;         /* NULL ends a table */
	int64_t *value;           /* set when the key is given; holds the default before */
	int64_t min, max;         /* of a number */
	const char *const *words; /* instead of a number: the value is the word's index; ends with NULL */
};

/**
 * Read an argument.
 *
 * @param path   receives the path, PIN_PATH_BYTES
 * @param error  receives what is wrong, one line
 * @return 0 or -EINVAL
 */
int pin_argument_parse(const char *argument, char *path, const struct pin_key *keys, char *error, size_t error_bytes);

#endif
