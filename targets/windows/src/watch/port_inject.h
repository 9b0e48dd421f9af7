/* SPDX-License-Identifier: Apache-2.0 */
/* Our library into a program that has been created suspended. */
#ifndef BW_WATCH_PORT_INJECT_H
#define BW_WATCH_PORT_INJECT_H

#include <windows.h>

#include <stdbool.h>

/**
 * Load the library by a thread of the process that calls LoadLibraryW: Windows then first loads what the program is linked with, so
 * that all it has is there to be watched before its first instruction. Changing its import table in place of that would need
 * room near the program, and breaks programs that check themselves.
 *
 * @param library   path of bw-watch.dll
 * @param recorder  process of bw-accel
 * @return false: it is not in it; GetLastError() says why
 */
bool inject_library(const PROCESS_INFORMATION *process, const wchar_t *library, DWORD recorder);

#endif
