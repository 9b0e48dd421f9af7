/* SPDX-License-Identifier: Apache-2.0 */
#include "port_inject.h"

#include <string.h>
#include <wchar.h>

#include "port_memory.h"

/* Run LoadLibraryW in the process to its end. */
static bool load(HANDLE process, const wchar_t *library)
{
	FARPROC loader = GetProcAddress(GetModuleHandleW(L"kernel32.dll"), "LoadLibraryW"); /* in all processes at one address */
	size_t size = (wcslen(library) + 1) * sizeof(*library);
	void *text = VirtualAllocEx(process, NULL, size, MEM_COMMIT | MEM_RESERVE, PAGE_READWRITE);
	LPTHREAD_START_ROUTINE start;
	HANDLE thread = NULL;
	DWORD error;

	memcpy(&start, &loader, sizeof(start));
	if (text && WriteProcessMemory(process, text, library, size, NULL))
		thread = CreateRemoteThread(process, NULL, 0, start, text, 0, NULL);
	error = GetLastError();
	if (thread) {
		WaitForSingleObject(thread, INFINITE); /* it ends with the process at the latest */
		CloseHandle(thread);
	}
	if (text)
		VirtualFreeEx(process, text, 0, MEM_RELEASE);
	SetLastError(error);
	return thread != NULL;
}

bool inject_library(const PROCESS_INFORMATION *process, const wchar_t *library, DWORD recorder)
{
	HANDLE memory;
	struct watch_order *order = memory_map(WATCH_ORDER_NAME, process->dwProcessId, sizeof(*order), &memory);
	bool attached = false;
	DWORD error;

	if (!order)
		return false;
	*order = (struct watch_order){ .recorder = recorder };
	if (load(process->hProcess, library)) {
		attached = __atomic_load_n(&order->attached, __ATOMIC_ACQUIRE) != 0;
		SetLastError(attached ? ERROR_SUCCESS : ERROR_DLL_INIT_FAILED);
	}
	error = GetLastError();
	UnmapViewOfFile(order);
	CloseHandle(memory);
	SetLastError(error);
	return attached;
}
