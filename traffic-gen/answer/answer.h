/* SPDX-License-Identifier: Apache-2.0 */
/* The frame of every answer of a tool: one line, an object (docs/native-tools.md, "Answers"). */
#ifndef BW_ANSWER_H
#define BW_ANSWER_H

#include "base/json.h"

/** Begin a line. @param type  "ready", "result", … @param tool  the program and its verb */
static inline void answer_begin(struct json *json, const char *type, const char *tool)
{
	json_object_open(json, NULL);
	json_string(json, "type", type);
	json_string(json, "tool", tool);
}

/** End it, and hand it over. @return as json_line_end() */
static inline int answer_end(struct json *json)
{
	json_object_close(json);
	return json_line_end(json);
}

#endif
