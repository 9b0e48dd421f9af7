/* SPDX-License-Identifier: Apache-2.0 */
#include "program_header.h"

#include <string.h>

enum {
	OFFSET_AT = 0x3c, /* of the PE header, in the header of MS-DOS */
	MACHINE_AT = 4,
	FLAGS_AT = 22,
	HEADER_BYTES = 24,
	MACHINE_I386 = 0x014c,
	MACHINE_ARM = 0x01c4,
	MACHINE_X86_64 = 0x8664,
	IS_EXECUTABLE = 0x0002,
	IS_LIBRARY = 0x2000
};

static unsigned int number16(const uint8_t *at)
{
	return at[0] | (unsigned int)at[1] << 8;
}

enum program_kind program_kind(const uint8_t *head, size_t size)
{
	size_t at;
	unsigned int machine, flags;

	if (size < OFFSET_AT + 4 || memcmp(head, "MZ", 2) != 0)
		return PROGRAM_NONE;
	at = number16(head + OFFSET_AT) | (size_t)number16(head + OFFSET_AT + 2) << 16;
	if (at > size || size - at < HEADER_BYTES || memcmp(head + at, "PE\0\0", 4) != 0)
		return PROGRAM_NONE;
	machine = number16(head + at + MACHINE_AT);
	flags = number16(head + at + FLAGS_AT);
	if (!(flags & IS_EXECUTABLE))
		return PROGRAM_NONE;
	if (flags & IS_LIBRARY)
		return PROGRAM_LIBRARY;
	if (machine == MACHINE_I386 || machine == MACHINE_ARM)
		return PROGRAM_32_BIT;
	return machine == MACHINE_X86_64 ? PROGRAM_X86_64 : PROGRAM_OTHER_MACHINE;
}
