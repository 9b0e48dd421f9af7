/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BW_VERSION_H
#define BW_VERSION_H

/* Of all tools; their results carry it. */
#define BW_VERSION "0.2.2"

#endif
