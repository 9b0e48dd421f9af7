/* SPDX-License-Identifier: Apache-2.0 */
/* Port layer for Linux: shared objects as plug-ins. Programs that are linked statically have port_plugin_none.c instead. */
#include "port/port_clock.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>

int port_plugin_open(const char *path, const char *symbol, void **plugin_out, void **address_out, char *error,
		     size_t error_bytes)
{
	void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	void *address;

	if (!plugin) {
		snprintf(error, error_bytes, "%s", dlerror());
		return -ENOENT;
	}
	address = dlsym(plugin, symbol);
	if (!address) {
		snprintf(error, error_bytes, "%s", dlerror());
		dlclose(plugin);
		return -ENOSYS;
	}
	*plugin_out = plugin;
	*address_out = address;
	return 0;
}

void port_plugin_close(void *plugin)
{
	dlclose(plugin);
}
