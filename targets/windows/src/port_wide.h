/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Port layer: texts are UTF-8 in these programs, UTF-16 in calls of Windows, whose calls with 8-bit texts know the names of one
 * language alone.
 */
#ifndef BW_WINDOWS_PORT_WIDE_H
#define BW_WINDOWS_PORT_WIDE_H

#include <windows.h>

#include <stdbool.h>

/** @return false where it does not fit or is no UTF-8; wide is empty then */
static inline bool wide_from(const char *text, wchar_t *wide, int capacity)
{
	if (MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text, -1, wide, capacity))
		return true;
	wide[0] = L'\0';
	return false;
}

/** @return false where it does not fit; text is empty then */
static inline bool wide_to(const wchar_t *wide, char *text, int size_bytes)
{
	if (wide && WideCharToMultiByte(CP_UTF8, 0, wide, -1, text, size_bytes, NULL, NULL))
		return true;
	text[0] = '\0';
	return false;
}

#endif
