/* SPDX-License-Identifier: Apache-2.0 */
/* Stands before the C library's own header of this name. Programs and libraries are taken to machines whose C library is older than
 * that of the host that builds them. From glibc 2.38 on its headers give strtol and scanf, with _GNU_SOURCE, the meaning of C23
 * (a binary "0b1") by symbols that an older one does not have. */
#pragma GCC system_header
#include_next <features.h>

#ifdef __GLIBC_USE_C2X_STRTOL /* 2.38, 2.39 */
#undef __GLIBC_USE_C2X_STRTOL
#define __GLIBC_USE_C2X_STRTOL 0
#endif
#ifdef __GLIBC_USE_C23_STRTOL /* later */
#undef __GLIBC_USE_C23_STRTOL
#define __GLIBC_USE_C23_STRTOL 0
#endif
