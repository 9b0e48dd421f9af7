/* SPDX-License-Identifier: Apache-2.0 */
/* The frame of every answer of a tool: one line, an object (docs/native-tools.md, "Answers"). */
#ifndef BW_ANSWER_H
#define BW_ANSWER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/json.h"
#include "version.h"

/** Begin a line. @param type  "ready", "result", … @param tool  the program and its verb */
static inline void answer_begin(struct json *json, const char *type, const char *tool)
{
	json_object_open(json, NULL);
	json_string(json, "type", type);
	json_string(json, "tool", tool);
}

/** Begin a result. */
static inline void answer_result(struct json *json, const char *tool)
{
	answer_begin(json, "result", tool);
	json_string(json, "version", BW_VERSION);
}

/** Write "complete", "valid" and "invalid_reasons". @return whether it is valid: without a reason */
static inline bool answer_validity(struct json *json, bool complete, const char *const *reasons, size_t count)
{
	json_bool(json, "complete", complete);
	json_bool(json, "valid", count == 0);
	json_array_open(json, "invalid_reasons");
	for (size_t i = 0; i < count; i++)
		json_string(json, NULL, reasons[i]);
	json_array_close(json);
	return count == 0;
}

/** The same with one reason at most; NULL: none. */
static inline bool answer_valid_unless(struct json *json, bool complete, const char *reason)
{
	return answer_validity(json, complete, &reason, reason ? 1 : 0);
}

/** End it, and hand it over. @return as json_line_end() */
static inline int answer_end(struct json *json)
{
	json_object_close(json);
	return json_line_end(json);
}

#endif
