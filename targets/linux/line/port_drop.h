/* SPDX-License-Identifier: Apache-2.0 */
/* What the program of BPF and its loader share: an interface, and what it loses of the frames that come in by it. */
#ifndef BW_PORT_DROP_H
#define BW_PORT_DROP_H

#include <linux/types.h>

struct line {
	__u64 random; /* state of the generator; not 0 */
	__u64 seen, dropped;
	__u64 loss;        /* of 2^32 */
	__u64 every;       /* each so many are lost besides; 0: none */
	__u64 least_bytes; /* smaller frames are neither counted nor lost */
};

#endif
