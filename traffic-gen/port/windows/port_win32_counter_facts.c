/* SPDX-License-Identifier: Apache-2.0 */
/* Port layer for Windows 10 and later: what processor and system say of the counter. */
#include "port/port_timeservice.h"

#include <windows.h>

#include <cpuid.h>

enum { POWER_LEAF = 0x80000007, INVARIANT_BIT = 8, INTERRUPT_UNIT_NS = 100 };

typedef void(WINAPI *query_interrupt_time)(ULONGLONG *);

bool port_counter_invariant(void)
{
	unsigned int eax, ebx, ecx, edx;

	return __get_cpuid(POWER_LEAF, &eax, &ebx, &ecx, &edx) && (edx >> INVARIANT_BIT & 1);
}

int64_t port_suspended_ns(void)
{
	HMODULE base = GetModuleHandleA("kernelbase.dll");
	query_interrupt_time query = base ? (query_interrupt_time)(uintptr_t)GetProcAddress(base, "QueryInterruptTime") : NULL;
	ULONGLONG biased, unbiased;

	if (!query || !QueryUnbiasedInterruptTime(&unbiased))
		return 0;
	query(&biased);
	return ((int64_t)biased - (int64_t)unbiased) * INTERRUPT_UNIT_NS;
}
