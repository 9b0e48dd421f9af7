/* SPDX-License-Identifier: Apache-2.0 */
#include "timeservice/ntp_exchange.h"

#include <string.h>

#include "base/big_endian.h"

/* Finer clocks than 1 ns cannot be told; coarser ones than a second are of no time that has a bound. */
enum { PRECISION_MIN_LOG2_S = -30, PRECISION_MAX_LOG2_S = 0 };

/* A server may read a stamp in steps, and add random bits below its precision: that much is no contradiction. */
#define READING_NOISE_NS INT64_C(1000)

static const char *const own_names[EXCHANGE_REJECTS - NTP_REJECTS] = {
	[EXCHANGE_SOURCE - NTP_REJECTS] = "source",
	[EXCHANGE_LONG - NTP_REJECTS] = "long",
	[EXCHANGE_DUPLICATE - NTP_REJECTS] = "duplicate",
	[EXCHANGE_PREVIOUS - NTP_REJECTS] = "previous",
	[EXCHANGE_MIN_DELAY - NTP_REJECTS] = "min-delay",
	[EXCHANGE_NO_ANSWER - NTP_REJECTS] = "no-answer",
	[EXCHANGE_NOT_SENT - NTP_REJECTS] = "not-sent",
	[EXCHANGE_MAC_MISSING - NTP_REJECTS] = "mac-missing",
	[EXCHANGE_MAC_SHORT - NTP_REJECTS] = "mac-short",
	[EXCHANGE_MAC_KEY - NTP_REJECTS] = "mac-key",
	[EXCHANGE_MAC_WRONG - NTP_REJECTS] = "mac-wrong",
	[EXCHANGE_CRYPTO_NAK - NTP_REJECTS] = "crypto-nak",
};

bool exchange_reject_is_of_key(unsigned int reject)
{
	return reject >= EXCHANGE_MAC_MISSING && reject <= EXCHANGE_CRYPTO_NAK;
}

const char *exchange_reject_name(unsigned int reject)
{
	return reject < NTP_REJECTS ? ntp_reject_name((enum ntp_reject)reject) : own_names[reject - NTP_REJECTS];
}

void ntp_exchange_init(struct ntp_exchange *exchange, bool interleave)
{
	memset(exchange, 0, sizeof(*exchange));
	exchange->interleave = interleave;
}

void ntp_exchange_restart(struct ntp_exchange *exchange)
{
	exchange->asked = false;
	exchange->answered = false;
	exchange->open = false;
}

void ntp_exchange_count(struct ntp_exchange *exchange, unsigned int reject)
{
	exchange->counts[reject]++;
}

void ntp_exchange_use_key(struct ntp_exchange *exchange, const struct exchange_key *key)
{
	exchange->key = *key;
}

/* In the same time wherever they differ. */
static bool tags_differ(const uint8_t *a, const uint8_t *b)
{
	volatile uint8_t difference = 0;

	for (int i = 0; i < EXCHANGE_TAG_BYTES; i++)
		difference |= a[i] ^ b[i];
	return difference != 0;
}

/* Returns NTP_GOOD or what is wrong with the MAC of an answer; one whose tag cannot be worked out here is wrong. */
static unsigned int check_mac(const struct exchange_key *key, const uint8_t *bytes, size_t size_bytes)
{
	const uint8_t *mac = bytes + NTP_PACKET_BYTES;
	uint8_t tag[EXCHANGE_TAG_BYTES];

	if (size_bytes == NTP_PACKET_BYTES)
		return EXCHANGE_MAC_MISSING;
	if (size_bytes == NTP_PACKET_BYTES + EXCHANGE_KEY_ID_BYTES && big_endian_get(mac, EXCHANGE_KEY_ID_BYTES) == 0)
		return EXCHANGE_CRYPTO_NAK;
	if (size_bytes != EXCHANGE_PACKET_BYTES)
		return EXCHANGE_MAC_SHORT;
	if (big_endian_get(mac, EXCHANGE_KEY_ID_BYTES) != key->id)
		return EXCHANGE_MAC_KEY;
	if (key->tag(key->context, bytes, NTP_PACKET_BYTES, tag) || tags_differ(tag, mac + EXCHANGE_KEY_ID_BYTES))
		return EXCHANGE_MAC_WRONG;
	return NTP_GOOD;
}

int ntp_exchange_ask(struct ntp_exchange *exchange, uint64_t number, uint8_t packet[EXCHANGE_PACKET_BYTES])
{
	const struct exchange_key *key = &exchange->key;
	int err;

	exchange->asked = true;
	exchange->transmit = number;
	exchange->receive = exchange->interleave && exchange->answered ? exchange->received : 0;
	if (exchange->receive)
		ntp_request_pack_interleaved(packet, exchange->server_receive, exchange->receive, number);
	else
		ntp_request_pack(packet, number);
	if (!key->id)
		return NTP_PACKET_BYTES;
	big_endian_put(packet + NTP_PACKET_BYTES, EXCHANGE_KEY_ID_BYTES, key->id);
	err = key->tag(key->context, packet, NTP_PACKET_BYTES, packet + NTP_PACKET_BYTES + EXCHANGE_KEY_ID_BYTES);
	return err ? err : EXCHANGE_PACKET_BYTES;
}

/* The first reason against a reply; *ended as of ntp_exchange_take(). */
static unsigned int check(struct ntp_exchange *exchange, const uint8_t *bytes, size_t size_bytes, bool from_server, bool *ended)
{
	struct ntp_reply *reply = &exchange->reply;
	unsigned int reject;

	if (!from_server)
		return EXCHANGE_SOURCE;
	if (ntp_reply_parse(bytes, size_bytes, reply))
		return NTP_SHORT;
	if (size_bytes > (exchange->key.id ? EXCHANGE_PACKET_BYTES : NTP_PACKET_BYTES))
		return EXCHANGE_LONG;
	/* In the interleaved mode t3 belongs to another exchange than t2: they are compared when the exchange is complete. */
	exchange->reply_interleaved = exchange->asked && exchange->receive && reply->origin == exchange->receive;
	if (exchange->reply_interleaved) {
		struct ntp_reply own = *reply;

		if (own.transmit) /* a missing stamp is refused below */
			own.transmit = own.receive;
		reject = ntp_reply_check(&own, exchange->receive);
	} else {
		reject = ntp_reply_check(reply, exchange->transmit);
		if (reject != NTP_MODE && reject != NTP_VERSION && !exchange->asked)
			reject = NTP_ORIGIN;
		if (reject == NTP_ORIGIN && exchange->answered &&
		    (reply->origin == exchange->last_transmit || (exchange->last_receive && reply->origin == exchange->last_receive)))
			reject = EXCHANGE_DUPLICATE;
	}
	if (reject == NTP_GOOD && ntp_to_utc_ns(reply->receive) > EXCHANGE_UTC_MAX_NS)
		reject = NTP_STAMPS;
	*ended = reject == NTP_GOOD || (reject >= NTP_KISS_OF_DEATH && reject < NTP_REJECTS);
	/* Last: who does not know what was asked is not worth the work. But a kiss-of-death needs a MAC as well. */
	if (*ended && exchange->key.id) {
		unsigned int of_key = check_mac(&exchange->key, bytes, size_bytes);

		*ended = of_key == NTP_GOOD;
		return *ended ? reject : of_key;
	}
	return reject;
}

static int64_t root_distance_ns(const struct ntp_reply *reply)
{
	return reply->root_delay_ns / 2 + reply->root_dispersion_ns;
}

unsigned int ntp_exchange_take(struct ntp_exchange *exchange, const uint8_t *bytes, size_t size_bytes, bool from_server,
			       bool *ended, struct exchange_server *server)
{
	unsigned int reject;

	*ended = false;
	reject = check(exchange, bytes, size_bytes, from_server, ended);
	if (*ended) {
		*server = (struct exchange_server){
			.leap = exchange->reply.leap,
			.stratum = exchange->reply.stratum,
			.root_distance_ns = root_distance_ns(&exchange->reply),
		};
		memcpy(server->kiss, exchange->reply.kiss, sizeof(server->kiss));
		exchange->asked = false;
	}
	if (reject != NTP_GOOD)
		exchange->counts[reject]++;
	return reject;
}

void exchange_rough_interval(const struct exchange_stamps *stamps, int64_t t2_utc_ns, int64_t *local_ns, int64_t *low_ns,
			     int64_t *high_ns)
{
	int64_t wider_ns = stamps->error_ns + READING_NOISE_NS;

	*local_ns = stamps->t1_local_ns;
	*low_ns = t2_utc_ns - stamps->t4_local_ns - wider_ns;
	*high_ns = t2_utc_ns - stamps->t1_local_ns + wider_ns;
}

struct exchange_stamps ntp_exchange_rough_stamps(const struct ntp_exchange *exchange)
{
	struct exchange_stamps stamps = exchange->last;

	stamps.error_ns += exchange->precision_ns;
	return stamps;
}

bool ntp_exchange_rough(const struct ntp_exchange *exchange, int64_t *local_ns, int64_t *low_ns, int64_t *high_ns)
{
	struct exchange_stamps stamps = ntp_exchange_rough_stamps(exchange);

	if (!exchange->answered)
		return false;
	exchange_rough_interval(&stamps, ntp_to_utc_ns(exchange->server_receive), local_ns, low_ns, high_ns);
	return true;
}

static int64_t precision_ns(int log2_s)
{
	if (log2_s < PRECISION_MIN_LOG2_S)
		log2_s = PRECISION_MIN_LOG2_S;
	if (log2_s > PRECISION_MAX_LOG2_S)
		log2_s = PRECISION_MAX_LOG2_S;
	return (INT64_C(1000000000) >> -log2_s) + 1;
}

/* Put a sample together. Returns NTP_GOOD or NTP_NEGATIVE_DELAY. */
static unsigned int sample_of(const struct exchange_stamps *stamps, uint64_t server_receive, uint64_t server_transmit,
			      const struct ntp_reply *reply, struct exchange_sample *sample)
{
	int64_t held_ns = ntp_difference_ns(server_transmit, server_receive);
	int64_t away_ns = stamps->t4_local_ns - stamps->t1_local_ns;

	*sample = (struct exchange_sample){
		.t1_local_ns = stamps->t1_local_ns,
		.t4_local_ns = stamps->t4_local_ns,
		.t1_ticks = stamps->t1_ticks,
		.t4_ticks = stamps->t4_ticks,
		.t2_utc_ns = ntp_to_utc_ns(server_receive),
		.t3_utc_ns = ntp_to_utc_ns(server_receive) + held_ns,
		.error_ns = stamps->error_ns,
		.precision_ns = precision_ns(reply->precision_log2_s),
		.root_distance_ns = root_distance_ns(reply),
		.kernel_stamps = stamps->kernel,
	};
	return away_ns < 0 || away_ns - held_ns < -(READING_NOISE_NS + 2 * (sample->error_ns + sample->precision_ns)) ?
		       NTP_NEGATIVE_DELAY :
		       NTP_GOOD;
}

/* Complete the exchange before this one by what the reply says of it. */
static unsigned int finish_previous(const struct ntp_exchange *exchange, struct exchange_sample *sample)
{
	const struct ntp_reply *reply = &exchange->reply;
	unsigned int reject;

	/* It was sent after its request had come, and before this one came. */
	if (ntp_difference_ns(reply->transmit, exchange->server_receive) < 0 ||
	    ntp_difference_ns(reply->receive, reply->transmit) < 0)
		return EXCHANGE_PREVIOUS;
	reject = sample_of(&exchange->last, exchange->server_receive, reply->transmit, reply, sample);
	sample->interleaved = true;
	sample->root_distance_ns = exchange->root_distance_ns;
	return reject == NTP_GOOD ? NTP_GOOD : EXCHANGE_PREVIOUS;
}

bool ntp_exchange_finish(struct ntp_exchange *exchange, const struct exchange_stamps *stamps, uint64_t number,
			 struct exchange_sample *sample, unsigned int *reject)
{
	const struct ntp_reply *reply = &exchange->reply;
	bool told = false;

	*reject = NTP_GOOD;
	if (!exchange->reply_interleaved)
		*reject = sample_of(stamps, reply->receive, reply->transmit, reply, sample), told = *reject == NTP_GOOD;
	else if (exchange->open)
		*reject = finish_previous(exchange, sample), told = *reject == NTP_GOOD;
	exchange->counts[*reject] += told || *reject != NTP_GOOD;
	exchange->answered = true;
	exchange->open = exchange->reply_interleaved;
	exchange->last_transmit = exchange->transmit;
	exchange->last_receive = exchange->receive;
	exchange->server_receive = reply->receive;
	exchange->received = number;
	exchange->last = *stamps;
	exchange->precision_ns = precision_ns(reply->precision_log2_s);
	exchange->root_distance_ns = root_distance_ns(reply);
	return told;
}
