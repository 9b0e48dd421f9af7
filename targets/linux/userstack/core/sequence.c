/* SPDX-License-Identifier: Apache-2.0 */
/* Initial sequence numbers as RFC 6528 has them: a clock of 4 us, and a keyed hash (SipHash-2-4) of both ends. */
#include <stdbool.h>
#include <string.h>

#include "stack_internal.h"

enum { US_PER_NUMBER = 4, ROUNDS_A_WORD = 2, ROUNDS_AT_END = 4 };

struct sip {
	uint64_t a, b, c, d;
};

static uint64_t rotate(uint64_t value, unsigned int bits)
{
	return value << bits | value >> (64 - bits);
}

static void mix(struct sip *s, int rounds)
{
	while (rounds-- > 0) {
		s->a += s->b;
		s->c += s->d;
		s->b = rotate(s->b, 13) ^ s->a;
		s->d = rotate(s->d, 16) ^ s->c;
		s->a = rotate(s->a, 32);
		s->c += s->b;
		s->a += s->d;
		s->b = rotate(s->b, 17) ^ s->c;
		s->d = rotate(s->d, 21) ^ s->a;
		s->c = rotate(s->c, 32);
	}
}

uint64_t stack_keyed_hash(const uint64_t key[2], const uint64_t *words, size_t count)
{
	struct sip s = {
		.a = key[0] ^ 0x736f6d6570736575U,
		.b = key[1] ^ 0x646f72616e646f6dU,
		.c = key[0] ^ 0x6c7967656e657261U,
		.d = key[1] ^ 0x7465646279746573U,
	};
	uint64_t length = (uint64_t)(count * sizeof(*words)) << 56;

	for (size_t i = 0; i <= count; i++) {
		uint64_t word = i < count ? words[i] : length;

		s.d ^= word;
		mix(&s, ROUNDS_A_WORD);
		s.a ^= word;
	}
	s.c ^= 0xff;
	mix(&s, ROUNDS_AT_END);
	return s.a ^ s.b ^ s.c ^ s.d;
}

uint32_t stack_initial_sequence_number(const ip_addr_t *local_ip, uint16_t local_port, const ip_addr_t *remote_ip, uint16_t remote_port)
{
	static uint64_t key[2];
	static bool has_key;
	struct stack_address ends[2];
	uint64_t words[5];

	if (!has_key) {
		stack_host_calls.random(stack_host_argument, key, sizeof(key));
		has_key = true;
	}
	stack_address_from_lwip(local_ip, local_port, &ends[0]);
	stack_address_from_lwip(remote_ip, remote_port, &ends[1]);
	memcpy(words, ends[0].ip, sizeof(ends[0].ip));
	memcpy(words + 2, ends[1].ip, sizeof(ends[1].ip));
	words[4] = (uint64_t)ends[0].port << 16 | ends[1].port;
	return (uint32_t)(stack_now_us() / US_PER_NUMBER + stack_keyed_hash(key, words, sizeof(words) / sizeof(words[0])));
}
