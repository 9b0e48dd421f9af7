/* SPDX-License-Identifier: Apache-2.0 */
/* The library's bwtime.c with the counter that a test sets. */
#include "timeservice/bwtime.c" /* NOLINT(bugprone-suspicious-include): with another counter */
