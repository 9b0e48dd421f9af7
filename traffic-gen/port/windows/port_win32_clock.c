/* SPDX-License-Identifier: Apache-2.0 */
/* Port layer for Windows 10 and later: clocks and plug-ins. There are no PTP hardware clocks, no shared pages of a guest. */
#include "port/port_clock.h"

#include <windows.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "port/port.h"

#define FILETIME_OF_UNIX_EPOCH INT64_C(116444736000000000) /* 100 ns units since 1601 */

void port_clocksource(char *name, size_t size_bytes)
{
	if (size_bytes)
		name[0] = '\0';
}

int port_kernel_clock_check(enum port_kernel_clock clock)
{
	(void)clock;
	return 0; /* TAI is UTC here: struct port_tai has what is to be added */
}

static int64_t coarse_realtime_ns(void)
{
	FILETIME time;

	GetSystemTimeAsFileTime(&time);
	return (((int64_t)time.dwHighDateTime << 32 | time.dwLowDateTime) - FILETIME_OF_UNIX_EPOCH) * 100;
}

int64_t port_kernel_clock_now_ns(enum port_kernel_clock clock)
{
	switch (clock) {
	case PORT_KERNEL_REALTIME:
	case PORT_KERNEL_TAI:
		return port_clock_now_ns(PORT_CLOCK_REALTIME);
	case PORT_KERNEL_REALTIME_COARSE:
		return coarse_realtime_ns();
	case PORT_KERNEL_MONOTONIC:
	case PORT_KERNEL_MONOTONIC_RAW: /* the performance counter is never slewed */
		break;
	}
	return port_clock_now_ns(PORT_CLOCK_MONOTONIC);
}

void port_kernel_clock_touch(enum port_kernel_clock clock)
{
	volatile int64_t reading_ns = port_kernel_clock_now_ns(clock);

	(void)reading_ns;
}

int port_phc_open(const char *path, struct port_phc **phc_out)
{
	(void)path;
	*phc_out = NULL;
	return -ENOTSUP;
}

void port_phc_close(struct port_phc *phc)
{
	(void)phc;
}

int port_phc_now_ns(const struct port_phc *phc, int64_t *phc_ns)
{
	(void)phc;
	*phc_ns = 0;
	return -ENOTSUP;
}

int port_phc_cross(const struct port_phc *phc, enum port_phc_read read, struct port_phc_cross *cross)
{
	(void)phc;
	(void)read;
	memset(cross, 0, sizeof(*cross));
	return -ENOTSUP;
}

int port_phc_caps(const struct port_phc *phc, struct port_phc_caps *caps)
{
	(void)phc;
	memset(caps, 0, sizeof(*caps));
	return -ENOTSUP;
}

void port_phc_facts(const char *class_folder, const char *path, port_fact *fact, void *sink)
{
	(void)class_folder;
	(void)path;
	(void)fact;
	(void)sink;
}

int port_plugin_open(const char *path, const char *symbol, void **plugin_out, void **address_out, char *error,
		     size_t error_bytes)
{
	HMODULE module = LoadLibraryA(path);
	FARPROC address;

	if (!module) {
		snprintf(error, error_bytes, "LoadLibrary failed with code %lu", GetLastError());
		return -ENOENT;
	}
	address = GetProcAddress(module, symbol);
	if (!address) {
		snprintf(error, error_bytes, "no symbol %s", symbol);
		FreeLibrary(module);
		return -ENOSYS;
	}
	*plugin_out = module;
	memcpy(address_out, &address, sizeof(address));
	return 0;
}

void port_plugin_close(void *plugin)
{
	FreeLibrary(plugin);
}

int port_instructions_open(struct port_instructions **instructions_out)
{
	*instructions_out = NULL;
	return -ENOTSUP;
}

void port_instructions_close(struct port_instructions *instructions)
{
	(void)instructions;
}

uint64_t port_instructions_read(const struct port_instructions *instructions)
{
	(void)instructions;
	return 0;
}
