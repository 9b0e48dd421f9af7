/* SPDX-License-Identifier: Apache-2.0 */
/* What kind of program a file is, by its header (Microsoft, PE Format). */
#ifndef BW_WATCH_PROGRAM_HEADER_H
#define BW_WATCH_PROGRAM_HEADER_H

#include <stddef.h>
#include <stdint.h>

enum { PROGRAM_HEADER_BYTES = 4096 };

enum program_kind { PROGRAM_X86_64, PROGRAM_32_BIT, PROGRAM_OTHER_MACHINE, PROGRAM_LIBRARY, PROGRAM_NONE };

/** Judge the first bytes of a file, PROGRAM_HEADER_BYTES or as many as it has. */
enum program_kind program_kind(const uint8_t *head, size_t size);

#endif
