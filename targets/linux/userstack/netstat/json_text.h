/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Look up values in a text of JSON as base/json.h writes it: without blanks between its parts. A value is where it begins in the
 * text, which ends with a zero; NULL stands for none, and is allowed wherever a value is.
 */
#ifndef BW_JSON_TEXT_H
#define BW_JSON_TEXT_H

#include <stddef.h>
#include <stdint.h>

/** @return the value of a member; NULL: no object, or none of it */
const char *json_text_member(const char *object, const char *key);
/** @return the first element of an array; NULL: no array, or an empty one */
const char *json_text_first(const char *array);
/** @return the element behind another; NULL: it was the last one */
const char *json_text_next(const char *element);
/** @return a whole number; 0: the value is none */
uint64_t json_text_number(const char *value);
/** Copy a string, as much as there is room for; what is not printable ASCII becomes a question mark. @return to */
const char *json_text_string(const char *value, char *to, size_t bytes);

#endif
