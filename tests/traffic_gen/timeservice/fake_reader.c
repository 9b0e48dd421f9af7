/* SPDX-License-Identifier: Apache-2.0 */
/* The library's reader.c with the counter that a test sets. */
#include "timeservice/reader.c" /* NOLINT(bugprone-suspicious-include): with another counter */
