/* SPDX-License-Identifier: Apache-2.0 */
/* The Internet checksum (RFC 1071) of eight bytes at a time: a stack without a card's help spends much of its time there. */
#include <stdint.h>
#include <string.h>

#include "lwipopts.h"

enum { UNROLLED = 4 };

uint16_t stack_checksum(const void *data, int length)
{
	const uint8_t *bytes = data;
	uint64_t sum = 0, words[UNROLLED] = { 0 };

	/* Sums of halves of 32 bits: no carry is lost within 2^32 words. */
	for (; length >= (int)sizeof(words); length -= (int)sizeof(words), bytes += sizeof(words)) {
		memcpy(words, bytes, sizeof(words));
		for (int i = 0; i < UNROLLED; i++)
			sum += (words[i] & UINT32_MAX) + (words[i] >> 32);
	}
	memset(words, 0, sizeof(words));
	if (length > 0)
		memcpy(words, bytes, (size_t)length);
	for (int i = 0; i < UNROLLED; i++)
		sum += (words[i] & UINT32_MAX) + (words[i] >> 32);
	sum = (sum & UINT32_MAX) + (sum >> 32);
	sum = (sum & UINT32_MAX) + (sum >> 32);
	sum = (sum & UINT16_MAX) + (sum >> 16);
	sum = (sum & UINT16_MAX) + (sum >> 16);
	return (uint16_t)sum;
}
