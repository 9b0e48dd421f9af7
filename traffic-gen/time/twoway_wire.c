/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "time/twoway.h"

#include "base/big_endian.h"

#define SPAN_LIMIT_NS (INT64_C(1) << 40)
#define OFFSET_LIMIT_NS (INT64_C(1) << 61)

static const uint8_t MAGIC[4] = { 'B', 'W', 'O', '1' };

/* Places of the fields, big endian. */
enum { AT_MAGIC = 0, AT_VERSION = 4, AT_KIND = 6, AT_SEQUENCE = 8, AT_RESERVED = 12, AT_COOKIE = 16, AT_T1 = 24, AT_T2 = 32,
       AT_T3 = 40 };

void twoway_pack(const struct twoway_packet *packet, uint8_t wire[TWOWAY_PACKET_BYTES])
{
	memcpy(wire + AT_MAGIC, MAGIC, sizeof(MAGIC));
	big_endian_put(wire + AT_VERSION, 2, TWOWAY_VERSION);
	big_endian_put(wire + AT_KIND, 2, packet->kind);
	big_endian_put(wire + AT_SEQUENCE, 4, packet->sequence);
	big_endian_put(wire + AT_RESERVED, 4, 0);
	big_endian_put(wire + AT_COOKIE, 8, packet->cookie);
	big_endian_put(wire + AT_T1, 8, (uint64_t)packet->t1_local_ns);
	big_endian_put(wire + AT_T2, 8, (uint64_t)packet->t2_peer_ns);
	big_endian_put(wire + AT_T3, 8, (uint64_t)packet->t3_peer_ns);
}

int twoway_parse(const void *data, size_t length, struct twoway_packet *packet)
{
	const uint8_t *wire = data;
	uint64_t kind;

	if (length != TWOWAY_PACKET_BYTES)
		return -EMSGSIZE;
	if (memcmp(wire + AT_MAGIC, MAGIC, sizeof(MAGIC)) != 0)
		return -EBADMSG;
	if (big_endian_get(wire + AT_VERSION, 2) != TWOWAY_VERSION)
		return -EPROTONOSUPPORT;
	kind = big_endian_get(wire + AT_KIND, 2);
	if ((kind != TWOWAY_REQUEST && kind != TWOWAY_REPLY) || big_endian_get(wire + AT_RESERVED, 4) != 0)
		return -EBADMSG;
	*packet = (struct twoway_packet){
		.kind = (enum twoway_kind)kind,
		.sequence = (uint32_t)big_endian_get(wire + AT_SEQUENCE, 4),
		.cookie = big_endian_get(wire + AT_COOKIE, 8),
		.t1_local_ns = (int64_t)big_endian_get(wire + AT_T1, 8),
		.t2_peer_ns = (int64_t)big_endian_get(wire + AT_T2, 8),
		.t3_peer_ns = (int64_t)big_endian_get(wire + AT_T3, 8),
	};
	return 0;
}

static bool differ_by_less(int64_t a_ns, int64_t b_ns, int64_t limit_ns)
{
	/* Both are positive: the difference fits. */
	return a_ns - b_ns < limit_ns && b_ns - a_ns < limit_ns;
}

bool twoway_exchange_valid(const struct twoway_exchange *exchange)
{
	if (exchange->t1_local_ns <= 0 || exchange->t2_peer_ns <= 0 || exchange->t3_peer_ns <= 0 ||
	    exchange->t4_local_ns <= 0)
		return false;
	if (exchange->t1_local_ns > exchange->t4_local_ns || exchange->t2_peer_ns > exchange->t3_peer_ns ||
	    twoway_rtt_ns(exchange) < 0)
		return false;
	return differ_by_less(exchange->t4_local_ns, exchange->t1_local_ns, SPAN_LIMIT_NS) &&
	       differ_by_less(exchange->t2_peer_ns, exchange->t1_local_ns, OFFSET_LIMIT_NS) &&
	       differ_by_less(exchange->t3_peer_ns, exchange->t4_local_ns, OFFSET_LIMIT_NS);
}

int64_t twoway_rtt_ns(const struct twoway_exchange *exchange)
{
	return (exchange->t4_local_ns - exchange->t1_local_ns) - (exchange->t3_peer_ns - exchange->t2_peer_ns);
}

int64_t twoway_offset_ns(const struct twoway_exchange *exchange)
{
	int64_t low_ns = exchange->t3_peer_ns - exchange->t4_local_ns;

	return low_ns + (exchange->t2_peer_ns - exchange->t1_local_ns - low_ns) / 2;
}
