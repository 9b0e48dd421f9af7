/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that a watched one starts, and ways past Winsock. */
#include "port_watch.h"

#include <stdio.h>
#include <string.h>
#include <winternl.h>

#include "port_inject.h"

static const wchar_t AFD[] = L"\\Device\\Afd";
enum { IOCTL_DEVICE_SHIFT = 12, AFD_DEVICE = 0x12 }; /* FSCTL_AFD_BASE, FILE_DEVICE_NETWORK */

/* The library into a program that was created suspended, and on with it, unless it was to stay so. */
static void follow(const PROCESS_INFORMATION *started, DWORD flags)
{
	DWORD error = GetLastError();
	wchar_t library[MAX_PATH];
	BOOL is_32_bit = FALSE;
	char text[WATCH_TEXT_BYTES];
	HMODULE own;

	GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT, (LPCWSTR)AFD, &own);
	GetModuleFileNameW(own, library, MAX_PATH);
	IsWow64Process(started->hProcess, &is_32_bit);
	if (is_32_bit)
		snprintf(text, sizeof(text), "starts process %lu of 32 bits, which is not watched", started->dwProcessId);
	else if (inject_library(started, library, watch_recorder()))
		snprintf(text, sizeof(text), "starts process %lu", started->dwProcessId);
	else
		snprintf(text, sizeof(text), "starts process %lu, which cannot be watched: error %lu", started->dwProcessId,
			 GetLastError());
	watch_note(text);
	if (!(flags & CREATE_SUSPENDED))
		ResumeThread(started->hThread);
	SetLastError(error);
}

static BOOL WINAPI own_CreateProcessW(LPCWSTR program, LPWSTR line, LPSECURITY_ATTRIBUTES process, LPSECURITY_ATTRIBUTES thread,
				      BOOL inherit, DWORD flags, LPVOID environment, LPCWSTR folder, LPSTARTUPINFOW startup,
				      LPPROCESS_INFORMATION started)
{
	BOOL done = CreateProcessW(program, line, process, thread, inherit, flags | CREATE_SUSPENDED, environment, folder, startup,
				   started);

	if (done)
		follow(started, flags);
	return done;
}

static BOOL WINAPI own_CreateProcessA(LPCSTR program, LPSTR line, LPSECURITY_ATTRIBUTES process, LPSECURITY_ATTRIBUTES thread,
				      BOOL inherit, DWORD flags, LPVOID environment, LPCSTR folder, LPSTARTUPINFOA startup,
				      LPPROCESS_INFORMATION started)
{
	BOOL done = CreateProcessA(program, line, process, thread, inherit, flags | CREATE_SUSPENDED, environment, folder, startup,
				   started);

	if (done)
		follow(started, flags);
	return done;
}

static NTSTATUS NTAPI own_NtCreateFile(PHANDLE file, ACCESS_MASK access, POBJECT_ATTRIBUTES attributes, PIO_STATUS_BLOCK status,
				       PLARGE_INTEGER size, ULONG file_attributes, ULONG share, ULONG disposition, ULONG options,
				       PVOID extended, ULONG extended_bytes)
{
	static long said;
	const UNICODE_STRING *name = attributes ? attributes->ObjectName : NULL;
	const USHORT length = sizeof(AFD) - sizeof(AFD[0]);

	if (name && name->Length >= length && _wcsnicmp(name->Buffer, AFD, length / sizeof(AFD[0])) == 0)
		watch_note_once(&said, "opens \\Device\\Afd itself: what it asks of it is not seen");
	return NtCreateFile(file, access, attributes, status, size, file_attributes, share, disposition, options, extended,
			    extended_bytes);
}

static NTSTATUS NTAPI own_NtDeviceIoControlFile(HANDLE file, HANDLE event, PIO_APC_ROUTINE routine, PVOID context,
						PIO_STATUS_BLOCK status, ULONG command, PVOID in, ULONG in_bytes, PVOID out,
						ULONG out_bytes)
{
	static long said;

	if (command >> IOCTL_DEVICE_SHIFT == AFD_DEVICE)
		watch_note_once(&said, "asks sockets past Winsock, by NtDeviceIoControlFile: not seen");
	return NtDeviceIoControlFile(file, event, routine, context, status, command, in, in_bytes, out, out_bytes);
}

static const struct hook hooks[] = {
	HOOK("ntdll.dll", NtCreateFile),           HOOK("ntdll.dll", NtDeviceIoControlFile),
	HOOK("kernelbase.dll", CreateProcessW),    HOOK("kernelbase.dll", CreateProcessA),
	HOOK("kernel32.dll", CreateProcessW),      HOOK("kernel32.dll", CreateProcessA),
};
enum { WITHOUT_CHILDREN = 2 };

struct hook_table process_hooks(bool children)
{
	return (struct hook_table){ hooks, children ? sizeof(hooks) / sizeof(hooks[0]) : WITHOUT_CHILDREN };
}
