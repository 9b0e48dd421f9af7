/* SPDX-License-Identifier: Apache-2.0 */
/** What every fuzz target has: the entry that libFuzzer calls, and the end of a run in which a promise is not kept. */
#ifndef BW_FUZZ_H
#define BW_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/** A fault is found: stays when compiled without assertions. */
static inline void promise(int kept)
{
	if (!kept)
		abort();
}

#endif
