/* SPDX-License-Identifier: Apache-2.0 */
#include "port_facts.h"

#include <windows.h>

#include <winver.h>

#include <cpuid.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "port_wide.h"

enum { NAME_CHARACTERS = 256 };

void fact_host_name(char *name, size_t size)
{
	wchar_t wide[NAME_CHARACTERS] = L"";
	DWORD length = NAME_CHARACTERS;

	GetComputerNameExW(ComputerNameDnsHostname, wide, &length);
	wide_to(wide, name, (int)size);
}

int fact_processors(void)
{
	SYSTEM_INFO system;

	GetNativeSystemInfo(&system);
	return (int)system.dwNumberOfProcessors;
}

uint64_t fact_memory_bytes(void)
{
	MEMORYSTATUSEX memory = { .dwLength = sizeof(memory) };

	GlobalMemoryStatusEx(&memory);
	return memory.ullTotalPhys;
}

int64_t fact_performance_counter_hz(void)
{
	LARGE_INTEGER frequency;

	QueryPerformanceFrequency(&frequency);
	return frequency.QuadPart;
}

bool fact_hypervisor(void)
{
	unsigned int eax = 0, ebx = 0, ecx = 0, edx = 0;

	return __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx >> 31 & 1);
}

void fact_file_version(const char *path, char version[64])
{
	wchar_t wide[MAX_PATH], expanded[MAX_PATH];
	VS_FIXEDFILEINFO *info = NULL;
	UINT info_size = 0;
	void *data = NULL;
	DWORD size;

	version[0] = '\0';
	if (!wide_from(path, wide, MAX_PATH) || !ExpandEnvironmentStringsW(wide, expanded, MAX_PATH))
		return;
	size = GetFileVersionInfoSizeW(expanded, NULL);
	data = size ? malloc(size) : NULL;
	if (data && GetFileVersionInfoW(expanded, 0, size, data) && VerQueryValueW(data, L"\\", (void **)&info, &info_size) && info)
		snprintf(version, 64, "%u.%u.%u.%u", HIWORD(info->dwFileVersionMS), LOWORD(info->dwFileVersionMS),
			 HIWORD(info->dwFileVersionLS), LOWORD(info->dwFileVersionLS));
	free(data);
}

bool fact_timer_finest_100ns(unsigned long *finest_100ns)
{
	typedef LONG NTAPI query_resolution(ULONG *coarsest, ULONG *finest, ULONG *now);
	FARPROC address = GetProcAddress(GetModuleHandleA("ntdll.dll"), "NtQueryTimerResolution");
	query_resolution *query = NULL;
	ULONG coarsest, finest, now;

	if (address)
		memcpy(&query, &address, sizeof(query));
	if (!query || query(&coarsest, &finest, &now))
		return false;
	*finest_100ns = finest < coarsest ? finest : coarsest;
	return true;
}
