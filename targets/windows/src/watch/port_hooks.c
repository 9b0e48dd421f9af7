/* SPDX-License-Identifier: Apache-2.0 */
#include "port_hooks.h"

#include <psapi.h>
#include <stdint.h>
#include <string.h>

enum { HOOKS_MAX = 160, MODULES_MAX = 1024, THUNK_BYTES = 16, PAGE_BYTES = 65536, LIBRARIES_MAX = 8 };
static const uint64_t EXPORT_REACH = UINT64_C(0xffff0000); /* an export is 32 bits above its library */

/* A function that has one of ours in its place. */
struct replaced {
	uint64_t original, own;
};

/* A page of jumps within reach of a library. */
struct jumps {
	HMODULE module;
	uint8_t *code;
	size_t used;
};

static IMAGE_DATA_DIRECTORY *directory_of(HMODULE module, int which)
{
	uint8_t *base = (uint8_t *)module;
	IMAGE_DOS_HEADER *dos = (void *)base;
	IMAGE_NT_HEADERS *headers;

	if (dos->e_magic != IMAGE_DOS_SIGNATURE)
		return NULL;
	headers = (void *)(base + dos->e_lfanew);
	return headers->OptionalHeader.DataDirectory[which].VirtualAddress ? &headers->OptionalHeader.DataDirectory[which] : NULL;
}

/* Where a library says what a function's address is; NULL: it has none of its own. */
static DWORD *find_export(HMODULE module, const char *name)
{
	uint8_t *base = (uint8_t *)module;
	IMAGE_DATA_DIRECTORY *directory = directory_of(module, IMAGE_DIRECTORY_ENTRY_EXPORT);
	IMAGE_EXPORT_DIRECTORY *exports;
	DWORD *names, *addresses;
	WORD *places;

	if (!directory)
		return NULL;
	exports = (void *)(base + directory->VirtualAddress);
	names = (void *)(base + exports->AddressOfNames);
	places = (void *)(base + exports->AddressOfNameOrdinals);
	addresses = (void *)(base + exports->AddressOfFunctions);
	for (DWORD i = 0; i < exports->NumberOfNames; i++) {
		DWORD *found = &addresses[places[i]];

		if (strcmp((const char *)base + names[i], name) != 0)
			continue;
		/* What lies within the table is the name of another library's function. */
		return *found - directory->VirtualAddress < directory->Size ? NULL : found;
	}
	return NULL;
}

/* Memory that an export of the library can point at. */
static uint8_t *allocate_above(HMODULE module)
{
	uint64_t base = (uint64_t)(uintptr_t)module;
	MEMORY_BASIC_INFORMATION region;

	for (uint64_t at = base; at < base + EXPORT_REACH; at = (uint64_t)(uintptr_t)region.BaseAddress + region.RegionSize) {
		uint64_t begin;
		uint8_t *code;

		if (!VirtualQuery((void *)(uintptr_t)at, &region, sizeof(region)))
			return NULL;
		begin = ((uint64_t)(uintptr_t)region.BaseAddress + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
		if (region.State != MEM_FREE || begin + PAGE_BYTES > (uint64_t)(uintptr_t)region.BaseAddress + region.RegionSize ||
		    begin + PAGE_BYTES > base + EXPORT_REACH)
			continue;
		code = VirtualAlloc((void *)(uintptr_t)begin, PAGE_BYTES, MEM_RESERVE | MEM_COMMIT, PAGE_EXECUTE_READWRITE);
		if (code)
			return code;
	}
	return NULL;
}

/* Append `mov rax, own; jmp rax`. */
static uint8_t *add_jump(struct jumps *jumps, uint64_t own)
{
	uint8_t *code = jumps->code + jumps->used;

	memcpy(code, "\x48\xb8", 2);
	memcpy(code + 2, &own, sizeof(own));
	memcpy(code + 10, "\xff\xe0", 2);
	jumps->used += THUNK_BYTES;
	return code;
}

static struct jumps *jumps_of(struct jumps *all, HMODULE module)
{
	for (int i = 0; i < LIBRARIES_MAX; i++) {
		if (!all[i].module) {
			all[i].code = allocate_above(module);
			all[i].module = module;
		}
		if (all[i].module == module)
			return all[i].code ? &all[i] : NULL;
	}
	return NULL;
}

static void write_memory(void *at, const void *value, size_t size)
{
	const DWORD code = PAGE_EXECUTE | PAGE_EXECUTE_READ | PAGE_EXECUTE_READWRITE | PAGE_EXECUTE_WRITECOPY;
	MEMORY_BASIC_INFORMATION region;
	DWORD before;

	/* Tables that share a page with code: other threads may be in it. */
	if (!VirtualQuery(at, &region, sizeof(region)) ||
	    !VirtualProtect(at, size, region.Protect & code ? PAGE_EXECUTE_READWRITE : PAGE_READWRITE, &before))
		return;
	memcpy(at, value, size);
	VirtualProtect(at, size, before, &before);
}

/* Change what a loaded module has imported already. */
static void replace_imports(HMODULE module, const struct replaced *replaced, size_t count)
{
	uint8_t *base = (uint8_t *)module;
	IMAGE_DATA_DIRECTORY *directory = directory_of(module, IMAGE_DIRECTORY_ENTRY_IMPORT);
	IMAGE_IMPORT_DESCRIPTOR *library;

	if (!directory)
		return;
	for (library = (void *)(base + directory->VirtualAddress); library->Name; library++) {
		for (uint64_t *slot = (void *)(base + library->FirstThunk); *slot; slot++) {
			for (size_t i = 0; i < count; i++) {
				if (*slot == replaced[i].original) {
					write_memory(slot, &replaced[i].own, sizeof(*slot));
					break;
				}
			}
		}
	}
}

static bool is_untouched(HMODULE module, const char *const *untouched)
{
	for (; *untouched; untouched++) {
		if (GetModuleHandleA(*untouched) == module)
			return true;
	}
	return false;
}

bool hooks_install(const struct hook *hooks, size_t count, const char *const *untouched, HMODULE own)
{
	static struct replaced replaced[HOOKS_MAX];
	static DWORD *exports[HOOKS_MAX];
	static HMODULE modules[MODULES_MAX];
	struct jumps jumps[LIBRARIES_MAX] = { 0 };
	DWORD ignored, targets[HOOKS_MAX], size = 0;
	size_t found = 0;

	for (size_t i = 0; i < count && found < HOOKS_MAX; i++) {
		HMODULE module = GetModuleHandleA(hooks[i].module);
		DWORD *place = module ? find_export(module, hooks[i].name) : NULL;
		struct jumps *page = place ? jumps_of(jumps, module) : NULL;

		if (!place)
			continue; /* an older system, or another library's */
		if (!page)
			return false;
		replaced[found].original = (uint64_t)(uintptr_t)module + *place;
		replaced[found].own = (uint64_t)(uintptr_t)hooks[i].own;
		targets[found] = (DWORD)(add_jump(page, replaced[found].own) - (uint8_t *)module);
		exports[found++] = place;
	}
	for (int i = 0; i < LIBRARIES_MAX && jumps[i].code; i++) {
		VirtualProtect(jumps[i].code, PAGE_BYTES, PAGE_EXECUTE_READ, &ignored);
		FlushInstructionCache(GetCurrentProcess(), jumps[i].code, PAGE_BYTES);
	}
	for (size_t i = 0; i < found; i++)
		write_memory(exports[i], &targets[i], sizeof(targets[i]));
	if (!EnumProcessModules(GetCurrentProcess(), modules, sizeof(modules), &size))
		return false;
	for (size_t i = 0; i < size / sizeof(modules[0]) && i < MODULES_MAX; i++) {
		if (modules[i] != own && !is_untouched(modules[i], untouched))
			replace_imports(modules[i], replaced, found);
	}
	return true;
}
