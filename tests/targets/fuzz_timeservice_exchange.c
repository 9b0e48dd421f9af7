/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Fuzz target: what a network sends to the time service's client, between requests that it asks. A reply is refused, or its sample
 * is sound; what does not answer the request under way does not end it; and the estimate takes whatever passes. Each input twice: the
 * second time with a key, without whose MAC nothing is used.
 */
#include <string.h>

#include "../traffic_gen/fuzz.h"
#include "timeservice/estimate.h"
#include "timeservice/ntp_exchange.h"

/* Of the input: a byte says what comes, the bytes after it are what it says. */
struct input {
	const uint8_t *at;
	size_t left;
};

static uint64_t draw(struct input *input, size_t bytes)
{
	uint64_t value = 0;

	for (; bytes && input->left; bytes--, input->left--)
		value = value << 8 | *input->at++;
	return value;
}

static void put_64(uint8_t *at, uint64_t value)
{
	for (int i = 0; i < 8; i++)
		at[i] = (uint8_t)(value >> (56 - 8 * i));
}

enum { KEY_ID = 7, KEY_FACTOR = 31, MAC_AT = NTP_PACKET_BYTES, TAG_AT = MAC_AT + EXCHANGE_KEY_ID_BYTES };

/* No cipher: a sum that a fuzzer meets by design of make_reply() alone. */
static int fake_tag(void *context, const uint8_t *bytes, size_t size, uint8_t tag[EXCHANGE_TAG_BYTES])
{
	uint64_t sum = *(const uint64_t *)context;

	for (size_t i = 0; i < size; i++)
		sum = (sum ^ bytes[i]) * UINT64_C(1099511628211);
	put_64(tag, sum);
	put_64(tag + 8, sum * KEY_FACTOR);
	return 0;
}

static uint64_t key_value = UINT64_C(14695981039346656037);

static int has_right_mac(const uint8_t *packet, size_t length)
{
	uint8_t tag[EXCHANGE_TAG_BYTES];

	if (length != EXCHANGE_PACKET_BYTES || packet[MAC_AT] || packet[MAC_AT + 1] || packet[MAC_AT + 2] || packet[MAC_AT + 3] != KEY_ID)
		return 0;
	fake_tag(&key_value, packet, NTP_PACKET_BYTES, tag);
	return memcmp(tag, packet + TAG_AT, sizeof(tag)) == 0;
}

/* A reply with fields of the input; its origin is right now and then, and so is its MAC, or nothing would be looked at. */
static size_t make_reply(struct input *input, const struct ntp_exchange *exchange, uint8_t reply[96])
{
	uint64_t kind = draw(input, 1);
	size_t size = kind & 8 ? draw(input, 1) % 96 : NTP_PACKET_BYTES;

	memset(reply, 0, 96);
	reply[0] = kind & 16 ? (uint8_t)draw(input, 1) : 4 << 3 | 4;
	reply[1] = kind & 32 ? (uint8_t)draw(input, 1) : 1;
	reply[3] = (uint8_t)draw(input, 1);
	put_64(reply + 4, kind & 64 ? draw(input, 8) : 0);
	put_64(reply + 24, kind & 1 ? exchange->transmit : kind & 2 ? exchange->receive : kind & 4 ? exchange->last_transmit : draw(input, 8));
	put_64(reply + 32, draw(input, 8));
	put_64(reply + 40, draw(input, 8));
	if (!exchange->key.id || kind & 8)
		return size;
	put_64(reply + MAC_AT, (uint64_t)KEY_ID << 32);
	fake_tag(&key_value, reply, NTP_PACKET_BYTES, reply + TAG_AT);
	if (kind & 128)
		reply[draw(input, 1) % 96] ^= (uint8_t)draw(input, 1);
	return EXCHANGE_PACKET_BYTES;
}

static void look(struct estimate *estimate)
{
	struct estimate_line line = estimate_current(estimate);

	promise(!line.valid || (line.low_ns >= 0 && line.high_ns >= 0 && line.growth_ppb >= 0));
}

static void play(const uint8_t *data, size_t size, int with_key)
{
	struct estimate_settings settings = estimate_default_settings();
	struct estimate *estimate = estimate_create(&settings);
	struct input input = { data, size };
	struct ntp_exchange exchange;
	uint64_t ticks = 1000000000;

	promise(estimate != NULL);
	ntp_exchange_init(&exchange, true);
	if (with_key)
		ntp_exchange_use_key(&exchange, &(struct exchange_key){ KEY_ID, fake_tag, &key_value });
	while (input.left) {
		uint64_t what = draw(&input, 1);
		uint8_t packet[96];
		struct exchange_server said = { 0 };
		struct exchange_sample sample;
		unsigned int reject;
		bool ended, asked = exchange.asked;
		size_t length;

		ticks += 1 + draw(&input, 3);
		if (what % 4 == 0) {
			int written = ntp_exchange_ask(&exchange, ticks, packet);

			promise(with_key ? has_right_mac(packet, (size_t)written) : written == NTP_PACKET_BYTES);
			continue;
		}
		if (what % 4 == 1) {
			estimate_end_batch(estimate, NULL);
			look(estimate);
			continue;
		}
		length = make_reply(&input, &exchange, packet);
		reject = ntp_exchange_take(&exchange, packet, length, what & 4 ? false : true, &ended, &said);
		promise(reject < EXCHANGE_REJECTS && *exchange_reject_name(reject));
		promise(asked || !ended);                    /* nobody asked */
		promise(ended || exchange.asked == asked);   /* what is not an answer ends nothing */
		promise(!with_key || !ended || has_right_mac(packet, length));
		promise(with_key || !exchange_reject_is_of_key(reject));
		if (reject != NTP_GOOD)
			continue;
		promise(ended && length == (with_key ? EXCHANGE_PACKET_BYTES : NTP_PACKET_BYTES) && !(what & 4));
		{
			struct exchange_stamps stamps = { (int64_t)exchange.transmit, (int64_t)ticks + (int64_t)draw(&input, 2), 10, true };

			if (ntp_exchange_finish(&exchange, &stamps, (uint64_t)stamps.t4_local_ns, &sample, &reject)) {
				promise(sample.t3_utc_ns >= sample.t2_utc_ns && sample.precision_ns > 0);
				estimate_add(estimate, &sample);
			}
		}
	}
	estimate_end_batch(estimate, NULL);
	look(estimate);
	estimate_destroy(estimate);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	play(data, size, 0);
	play(data, size, 1);
	return 0;
}
