/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Putting functions of ours in the place of a system library's, for a whole process: in the export table of that library, which
 * GetProcAddress and the imports of all libraries that come later go by, and in the import tables of all that is loaded already.
 * No code of the system is changed: that would need its instructions taken apart, and Windows and Wine have different ones.
 */
#ifndef BW_WATCH_PORT_HOOKS_H
#define BW_WATCH_PORT_HOOKS_H

#include <windows.h>

#include <stdbool.h>
#include <stddef.h>

typedef void (*any_function)(void);

/** A function, and what is called in its place. */
struct hook {
	const char *module, *name;
	any_function own;
};

/**
 * Put them all in place; once in a process. What calls itself by our functions stays as it was: the libraries that are named in
 * `untouched`, and our own.
 *
 * @param untouched  names of modules, NULL behind the last
 * @param own        module of the functions
 * @return false: there was no memory for it, and nothing is changed
 */
bool hooks_install(const struct hook *hooks, size_t count, const char *const *untouched, HMODULE own);

#endif
