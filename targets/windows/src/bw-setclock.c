/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bw-setclock - say how Windows keeps its clock, as one JSON object
 *
 * Windows keeps UTC and knows nothing of TAI: tai_utc_s is always 0, as on a Linux kernel that was never told. The clock's rate
 * is that of GetSystemTimeAdjustmentPrecise, relative to the nominal one. Nothing is changed: this program has no options here.
 *
 * Exit codes: 0 done, 2 bad argument, 3 not possible on this machine.
 *
 * System program: GetSystemTimeAdjustmentPrecise in print.
 */
#include <windows.h>

#include <stdio.h>
#include <string.h>

enum exit_code { EXIT_DONE = 0, EXIT_BAD_INPUT = 2, EXIT_MISSING_CAPABILITY = 3 };

#define PPB 1e9

/* Offset of the clock's rate in ppb, of either call: the precise one is there since Windows 10 1607. */
static BOOL rate_read(double *frequency_ppb)
{
	typedef BOOL WINAPI adjustment_precise(DWORD64 *adjustment, DWORD64 *increment, BOOL *disabled);
	FARPROC address = GetProcAddress(GetModuleHandleA("kernelbase.dll"), "GetSystemTimeAdjustmentPrecise");
	adjustment_precise *read_precise = NULL;
	DWORD64 adjustment = 0, increment = 0;
	DWORD coarse = 0, coarse_increment = 0;
	BOOL disabled = FALSE;

	if (address)
		memcpy(&read_precise, &address, sizeof(read_precise));
	if (!read_precise || !read_precise(&adjustment, &increment, &disabled)) {
		if (!GetSystemTimeAdjustment(&coarse, &coarse_increment, &disabled))
			return FALSE;
		adjustment = coarse;
		increment = coarse_increment;
	}
	*frequency_ppb = disabled || !increment ? 0.0 : ((double)adjustment / (double)increment - 1.0) * PPB;
	return TRUE;
}

int main(int argc, char **argv)
{
	double frequency_ppb;

	if (argc > 1) {
		fprintf(stderr, "bw-setclock: unknown option %s: on Windows it only says how the clock is kept\n", argv[1]);
		return EXIT_BAD_INPUT;
	}
	if (!rate_read(&frequency_ppb)) {
		fprintf(stderr, "bw-setclock: error %lu\n", GetLastError());
		return EXIT_MISSING_CAPABILITY;
	}
	printf("{\"frequency_ppb\":%.3f,\"tai_utc_s\":0}\n", frequency_ppb);
	return fflush(stdout) ? EXIT_MISSING_CAPABILITY : EXIT_DONE;
}
