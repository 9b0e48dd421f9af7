/* SPDX-License-Identifier: Apache-2.0 */
#include "port_say.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

void say(const char *format, ...)
{
	char line[256];
	va_list values;
	int length;

	va_start(values, format);
	length = vsnprintf(line, sizeof(line) - 1, format, values);
	va_end(values);
	if (length > (int)sizeof(line) - 2)
		length = (int)sizeof(line) - 2;
	line[length] = '\n';
	dprintf(STDERR_FILENO, "bw-accel: %s: %.*s", program_invocation_short_name, length + 1, line);
}
