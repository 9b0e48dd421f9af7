/* SPDX-License-Identifier: Apache-2.0 */
/* Port layer of programs that are linked statically: they cannot load shared objects. */
#include "port/port_clock.h"

#include <errno.h>
#include <stdio.h>

int port_plugin_open(const char *path, const char *symbol, void **plugin_out, void **address_out, char *error,
		     size_t error_bytes)
{
	(void)path;
	(void)symbol;
	*plugin_out = NULL;
	*address_out = NULL;
	snprintf(error, error_bytes, "this build is linked statically and loads no plug-ins");
	return -ENOTSUP;
}

void port_plugin_close(void *plugin)
{
	(void)plugin;
}
