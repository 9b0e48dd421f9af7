/* SPDX-License-Identifier: Apache-2.0 */
/* What lwIP asks of a compiler and of a system. */
#ifndef BW_LWIP_ARCH_CC_H
#define BW_LWIP_ARCH_CC_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define LWIP_ERRNO_STDINCLUDE

#define LWIP_PLATFORM_DIAG(x) \
	do { \
		printf x; \
	} while (0)

/* A broken invariant ends the program: what it would send next is no longer sure. */
#define LWIP_PLATFORM_ASSERT(x) \
	do { \
		fprintf(stderr, "lwIP: %s, at %s:%d\n", (x), __FILE__, __LINE__); \
		abort(); \
	} while (0)

#endif
