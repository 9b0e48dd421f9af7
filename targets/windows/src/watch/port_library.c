/* SPDX-License-Identifier: Apache-2.0 */
/* bw-watch.dll: bw-accel puts it into a program, before its first instruction. */
#include "port_watch.h"

#include <string.h>

#include "port_tune.h"

enum { TABLES = 5, HOOKS_MAX = 128 };

/* What Winsock and the system call of their own is no call of the program. */
static const char *const untouched[] = { "ws2_32.dll", "mswsock.dll", "kernel32.dll", "kernelbase.dll", "ntdll.dll", NULL };

BOOL WINAPI DllMain(HINSTANCE own, DWORD reason, LPVOID reserved);

BOOL WINAPI DllMain(HINSTANCE own, DWORD reason, LPVOID reserved)
{
	static struct hook hooks[HOOKS_MAX];
	size_t count = 0;

	(void)reserved;
	if (reason != DLL_PROCESS_ATTACH)
		return TRUE;
	DisableThreadLibraryCalls(own);
	if (!watch_attach())
		return FALSE;
	tune_process();
	const struct hook_table tables[TABLES] = { socket_hooks, transfer_hooks, waiting_hooks, extension_hooks,
						   process_hooks(watch_memory()->children) };

	for (int i = 0; i < TABLES; i++) {
		for (size_t j = 0; j < tables[i].count && count < HOOKS_MAX; j++)
			hooks[count++] = tables[i].hooks[j];
	}
	return hooks_install(hooks, count, untouched, own);
}
