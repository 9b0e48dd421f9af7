/* SPDX-License-Identifier: Apache-2.0 */
/** Exchanges with a server: basic and interleaved; what is refused, and that it ends nothing that only the server may end. */
#include <errno.h>
#include <stdlib.h>

#include "../check.h"
#include "base/time_units.h"
#include "timeservice/ntp_exchange.h"

#define UTC_NS (INT64_C(1795284915) * NS_PER_S)
#define WAY_NS INT64_C(100000)
#define HELD_NS INT64_C(20000)
#define TICKS UINT64_C(123456789012345)

struct scene {
	struct ntp_exchange exchange;
	uint64_t ticks;     /* a counter of 1 GHz: local time is its value */
	int64_t ahead_ns;   /* of the server's clock against local time */
	uint8_t request[EXCHANGE_PACKET_BYTES], reply[EXCHANGE_PACKET_BYTES + 20];
	int request_bytes;
	struct exchange_server said;
	struct exchange_sample sample;
	unsigned int reject;
	bool ended;
};

static void put_64(uint8_t *at, uint64_t value)
{
	for (int i = 0; i < 8; i++)
		at[i] = (uint8_t)(value >> (56 - 8 * i));
}

static uint64_t get_64(const uint8_t *at)
{
	uint64_t value = 0;

	for (int i = 0; i < 8; i++)
		value = value << 8 | at[i];
	return value;
}

static void scene_init(struct scene *scene, bool interleave)
{
	memset(scene, 0, sizeof(*scene));
	ntp_exchange_init(&scene->exchange, interleave);
	scene->ticks = TICKS;
	scene->ahead_ns = UTC_NS - (int64_t)TICKS;
}

static void ask(struct scene *scene)
{
	scene->ticks += 1000000;
	scene->request_bytes = ntp_exchange_ask(&scene->exchange, scene->ticks, scene->request);
}

/* What a server of stratum 1 answers. @param transmit_ns  of its clock; the origin is as the mode says */
static void answer(struct scene *scene, const uint8_t *origin, int64_t receive_ns, int64_t transmit_ns)
{
	memset(scene->reply, 0, sizeof(scene->reply));
	scene->reply[0] = 4 << 3 | 4;
	scene->reply[1] = 1;
	scene->reply[3] = (uint8_t)-25;
	memcpy(scene->reply + 12, "GPS", 3);
	memcpy(scene->reply + 24, origin, 8);
	put_64(scene->reply + 32, ntp_from_realtime_ns(receive_ns));
	put_64(scene->reply + 40, ntp_from_realtime_ns(transmit_ns));
}

static void answer_basic(struct scene *scene)
{
	int64_t receive_ns = (int64_t)scene->ticks + WAY_NS + scene->ahead_ns;

	answer(scene, scene->request + 40, receive_ns, receive_ns + HELD_NS);
}

/* As a server of RFC 9769: the transmit stamp is that of its reply before. */
static void answer_interleaved(struct scene *scene, int64_t last_transmit_ns)
{
	answer(scene, scene->request + 32, (int64_t)scene->ticks + WAY_NS + scene->ahead_ns, last_transmit_ns);
}

static unsigned int take(struct scene *scene, size_t size_bytes)
{
	scene->reject = ntp_exchange_take(&scene->exchange, scene->reply, size_bytes, true, &scene->ended, &scene->said);
	return scene->reject;
}

static bool finish(struct scene *scene)
{
	struct exchange_stamps stamps = {
		.t1_local_ns = (int64_t)scene->ticks,
		.t4_local_ns = (int64_t)scene->ticks + 2 * WAY_NS + HELD_NS,
		.error_ns = 10,
		.kernel = true,
	};

	return ntp_exchange_finish(&scene->exchange, &stamps, (uint64_t)stamps.t4_local_ns, &scene->sample, &scene->reject);
}

static void check_sample(const struct scene *scene, int64_t t1_local_ns)
{
	CHECK_INT(scene->sample.t1_local_ns, t1_local_ns);
	CHECK_THAT(llabs(scene->sample.t2_utc_ns - (t1_local_ns + WAY_NS + scene->ahead_ns)) <= 1, "t2");
	CHECK_THAT(llabs(scene->sample.t3_utc_ns - (t1_local_ns + WAY_NS + HELD_NS + scene->ahead_ns)) <= 2, "t3");
	CHECK_INT(scene->sample.t4_local_ns, t1_local_ns + 2 * WAY_NS + HELD_NS);
	CHECK_INT(scene->sample.precision_ns, 30); /* 2^-25 s */
	CHECK(scene->sample.kernel_stamps);
}

static void test_basic(void)
{
	struct scene scene;

	scene_init(&scene, false);
	for (int i = 0; i < 3; i++) {
		ask(&scene);
		CHECK(get_64(scene.request + 40) == scene.ticks); /* the raw counter */
		CHECK_INT(scene.request_bytes, NTP_PACKET_BYTES);
		CHECK_INT(get_64(scene.request + 24) | get_64(scene.request + 32), 0);
		answer_basic(&scene);
		CHECK_INT(take(&scene, NTP_PACKET_BYTES), NTP_GOOD);
		CHECK(scene.ended);
		CHECK_INT(scene.said.stratum, 1);
		CHECK(finish(&scene));
		CHECK(!scene.sample.interleaved);
		check_sample(&scene, (int64_t)scene.ticks);
	}
	CHECK_INT(scene.exchange.counts[NTP_GOOD], 3);
}

static void test_interleaved(void)
{
	struct scene scene;
	int64_t last_ticks, sent_ns;

	scene_init(&scene, true);
	ask(&scene);
	answer_basic(&scene);
	take(&scene, NTP_PACKET_BYTES);
	CHECK(finish(&scene)); /* the first one is answered in basic mode */
	sent_ns = (int64_t)scene.ticks + WAY_NS + HELD_NS + scene.ahead_ns;
	ask(&scene);
	CHECK(get_64(scene.request + 24) == scene.exchange.server_receive);
	CHECK(get_64(scene.request + 32) == scene.exchange.received);
	answer_interleaved(&scene, sent_ns + 5000);
	scene.reply[10] = 2; /* root dispersion: 2 / 256 s */
	CHECK_INT(take(&scene, NTP_PACKET_BYTES), NTP_GOOD);
	CHECK(!finish(&scene)); /* that exchange was told before */
	CHECK_INT(scene.reject, NTP_GOOD);
	last_ticks = (int64_t)scene.ticks;
	ask(&scene);
	answer_interleaved(&scene, last_ticks + WAY_NS + HELD_NS + scene.ahead_ns);
	scene.reply[10] = 1;
	CHECK_INT(take(&scene, NTP_PACKET_BYTES), NTP_GOOD);
	CHECK(finish(&scene));
	CHECK(scene.sample.interleaved);
	check_sample(&scene, last_ticks);
	CHECK_INT(scene.sample.root_distance_ns, 2 * NS_PER_S / 256); /* what the server said when it took that request */
	/* A server that has forgotten answers in basic mode: that counts by itself. */
	ask(&scene);
	answer_basic(&scene);
	scene.reply[10] = 3;
	CHECK_INT(take(&scene, NTP_PACKET_BYTES), NTP_GOOD);
	CHECK(finish(&scene));
	CHECK(!scene.sample.interleaved);
	CHECK_INT(scene.sample.root_distance_ns, 3 * NS_PER_S / 256);
	/* A stamp that cannot be of the reply before. */
	ask(&scene);
	answer_interleaved(&scene, sent_ns);
	take(&scene, NTP_PACKET_BYTES);
	finish(&scene);
	ask(&scene);
	answer_interleaved(&scene, sent_ns);
	CHECK_INT(take(&scene, NTP_PACKET_BYTES), NTP_GOOD);
	CHECK(!finish(&scene));
	CHECK_INT(scene.reject, EXCHANGE_PREVIOUS);
}

static void test_refused(void)
{
	static const struct {
		size_t at;
		uint8_t value;
		unsigned int reject;
		bool ended;
	} cases[] = {
		{ 0, 4 << 3 | 3, NTP_MODE, false },
		{ 0, 1 << 3 | 4, NTP_VERSION, false },
		{ 0, 3 << 6 | 4 << 3 | 4, NTP_LEAP, true },
		{ 1, 0, NTP_KISS_OF_DEATH, true },
		{ 1, 16, NTP_STRATUM, true },
		{ 31, 0xff, NTP_ORIGIN, false },
		{ 9, 2, NTP_ROOT_DISTANCE, true },
		{ 40, 0xe0, NTP_STAMPS, true },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct scene scene;

		scene_init(&scene, true);
		ask(&scene);
		answer_basic(&scene);
		scene.reply[cases[i].at] = cases[i].value;
		CHECK_INT(take(&scene, NTP_PACKET_BYTES), cases[i].reject);
		CHECK_INT(scene.ended, cases[i].ended);
		CHECK_INT(scene.exchange.counts[cases[i].reject], 1);
		if (cases[i].ended)
			continue;
		/* The true one still counts. */
		answer_basic(&scene);
		CHECK_INT(take(&scene, NTP_PACKET_BYTES), NTP_GOOD);
	}
}

static void test_sizes_and_sources(void)
{
	struct scene scene;

	scene_init(&scene, true);
	ask(&scene);
	answer_basic(&scene);
	CHECK_INT(take(&scene, 0), NTP_SHORT);
	CHECK_INT(take(&scene, 47), NTP_SHORT);
	CHECK_INT(take(&scene, 68), EXCHANGE_LONG);
	CHECK_INT(ntp_exchange_take(&scene.exchange, scene.reply, 48, false, &scene.ended, &scene.said), EXCHANGE_SOURCE);
	CHECK(!scene.ended);
	CHECK_INT(take(&scene, 48), NTP_GOOD);
}

static void test_replays(void)
{
	struct scene scene;
	uint8_t first[NTP_PACKET_BYTES];

	scene_init(&scene, true);
	answer_basic(&scene); /* nobody has asked */
	CHECK_INT(take(&scene, NTP_PACKET_BYTES), NTP_ORIGIN);
	ask(&scene);
	answer_basic(&scene);
	memcpy(first, scene.reply, sizeof(first));
	CHECK_INT(take(&scene, NTP_PACKET_BYTES), NTP_GOOD);
	CHECK(finish(&scene));
	CHECK_INT(take(&scene, NTP_PACKET_BYTES), EXCHANGE_DUPLICATE);
	ask(&scene);
	CHECK_INT(take(&scene, NTP_PACKET_BYTES), EXCHANGE_DUPLICATE);
	CHECK(!scene.ended);
	answer_basic(&scene);
	CHECK_INT(take(&scene, NTP_PACKET_BYTES), NTP_GOOD);
	CHECK(finish(&scene));
	memcpy(scene.reply, first, sizeof(first));
	ask(&scene);
	CHECK_INT(take(&scene, NTP_PACKET_BYTES), NTP_ORIGIN); /* older ones are nobody's */
	CHECK(!scene.ended);
}

static void test_negative_delay(void)
{
	struct scene scene;
	int64_t receive_ns;

	scene_init(&scene, false);
	ask(&scene);
	receive_ns = (int64_t)scene.ticks + WAY_NS + scene.ahead_ns;
	answer(&scene, scene.request + 40, receive_ns, receive_ns + NS_PER_S); /* held for longer than it was away */
	CHECK_INT(take(&scene, NTP_PACKET_BYTES), NTP_GOOD);
	CHECK(!finish(&scene));
	CHECK_INT(scene.reject, NTP_NEGATIVE_DELAY);
}

static void test_rough(void)
{
	struct scene scene;
	int64_t local_ns, low_ns, high_ns;

	scene_init(&scene, true);
	CHECK(!ntp_exchange_rough(&scene.exchange, &local_ns, &low_ns, &high_ns));
	ask(&scene);
	answer_basic(&scene);
	take(&scene, NTP_PACKET_BYTES);
	finish(&scene);
	CHECK(ntp_exchange_rough(&scene.exchange, &local_ns, &low_ns, &high_ns));
	CHECK(low_ns <= scene.ahead_ns && scene.ahead_ns <= high_ns && high_ns - low_ns < 3 * (2 * WAY_NS + HELD_NS));
}

/* Of a clock that is read in steps, by both ways to an interval: the truth lies within wherever in a step it is. */
static void test_coarse(int log2_s)
{
	int64_t step_ns = INT64_C(1000000000) >> -log2_s;

	for (int64_t into_ns = 0; into_ns < step_ns; into_ns += step_ns / 8) {
		struct scene scene;
		int64_t local_ns, low_ns, high_ns, read_ns;

		scene_init(&scene, false);
		ask(&scene);
		read_ns = (int64_t)scene.ticks + WAY_NS + scene.ahead_ns - into_ns;
		answer(&scene, scene.request + 40, read_ns, read_ns);
		scene.reply[3] = (uint8_t)log2_s;
		CHECK_INT(take(&scene, NTP_PACKET_BYTES), NTP_GOOD);
		CHECK(finish(&scene));
		CHECK_THAT(scene.sample.precision_ns > step_ns, "precision");
		CHECK(ntp_exchange_rough(&scene.exchange, &local_ns, &low_ns, &high_ns));
		CHECK_THAT(low_ns <= scene.ahead_ns && scene.ahead_ns <= high_ns, "truth");
	}
}

static void test_eras(void)
{
	CHECK_INT(ntp_to_utc_ns(ntp_from_realtime_ns(INT64_C(946684800) * NS_PER_S)), INT64_C(946684800) * NS_PER_S);
	CHECK_INT(ntp_to_utc_ns(ntp_from_realtime_ns(UTC_NS)), UTC_NS);
	/* 2036-02-07 06:28:16: the second era; 2100. */
	CHECK_INT(ntp_to_utc_ns(ntp_from_realtime_ns(INT64_C(2085978495) * NS_PER_S)), INT64_C(2085978495) * NS_PER_S);
	CHECK_INT(ntp_to_utc_ns(ntp_from_realtime_ns(INT64_C(2085978496) * NS_PER_S)), INT64_C(2085978496) * NS_PER_S);
	CHECK_INT(ntp_to_utc_ns(ntp_from_realtime_ns(INT64_C(4102444800) * NS_PER_S)), INT64_C(4102444800) * NS_PER_S);
	for (unsigned int i = 0; i < EXCHANGE_REJECTS; i++)
		CHECK(exchange_reject_name(i) && *exchange_reject_name(i));
}

/* ---- with a key ---------------------------------------------------------------------------------------------------- */

enum { KEY_ID = 0x01020304, MAC_AT = NTP_PACKET_BYTES, TAG_AT = MAC_AT + EXCHANGE_KEY_ID_BYTES };

/* No cipher, but every bit of the packet counts. The context is the key; NULL: it fails. */
static int fake_tag(void *context, const uint8_t *bytes, size_t size_bytes, uint8_t tag[EXCHANGE_TAG_BYTES])
{
	uint64_t low, high;

	if (!context)
		return -EIO;
	low = high = *(const uint64_t *)context;
	for (size_t i = 0; i < size_bytes; i++) {
		low = (low ^ bytes[i]) * UINT64_C(1099511628211);
		high = (high + bytes[i]) * UINT64_C(6364136223846793005);
	}
	put_64(tag, low);
	put_64(tag + 8, high);
	return 0;
}

static uint64_t right_key = 12345, other_key = 54321;

static void scene_init_with_key(struct scene *scene, bool interleave)
{
	scene_init(scene, interleave);
	ntp_exchange_use_key(&scene->exchange, &(struct exchange_key){ KEY_ID, fake_tag, &right_key });
}

/* End the reply in a MAC, as the server does it. */
static void authenticate(struct scene *scene, uint64_t *key)
{
	put_64(scene->reply + MAC_AT, (uint64_t)KEY_ID << 32);
	fake_tag(key, scene->reply, NTP_PACKET_BYTES, scene->reply + TAG_AT);
}

static void test_key_of_requests(void)
{
	uint8_t tag[EXCHANGE_TAG_BYTES];
	struct scene scene;

	scene_init_with_key(&scene, true);
	for (int i = 0; i < 3; i++) {
		ask(&scene);
		CHECK_INT(scene.request_bytes, 68); /* RFC 8573: key identifier and 128 bits */
		CHECK_INT(get_64(scene.request + MAC_AT) >> 32, KEY_ID);
		fake_tag(&right_key, scene.request, NTP_PACKET_BYTES, tag);
		CHECK(memcmp(tag, scene.request + TAG_AT, sizeof(tag)) == 0);
		answer_basic(&scene);
		authenticate(&scene, &right_key);
		CHECK_INT(take(&scene, EXCHANGE_PACKET_BYTES), NTP_GOOD);
		CHECK(scene.ended && finish(&scene));
		check_sample(&scene, (int64_t)scene.ticks);
	}
	/* A key that fails sends nothing. */
	ntp_exchange_use_key(&scene.exchange, &(struct exchange_key){ KEY_ID, fake_tag, NULL });
	ask(&scene);
	CHECK_INT(scene.request_bytes, -EIO);
}

static void test_key_in_interleaved_mode(void)
{
	struct scene scene;
	int64_t last_ticks;

	scene_init_with_key(&scene, true);
	ask(&scene);
	answer_basic(&scene);
	authenticate(&scene, &right_key);
	CHECK_INT(take(&scene, EXCHANGE_PACKET_BYTES), NTP_GOOD);
	finish(&scene);
	for (int i = 0; i < 2; i++) {
		last_ticks = (int64_t)scene.ticks;
		ask(&scene);
		answer_interleaved(&scene, last_ticks + WAY_NS + HELD_NS + scene.ahead_ns);
		authenticate(&scene, &other_key);
		CHECK_INT(take(&scene, EXCHANGE_PACKET_BYTES), EXCHANGE_MAC_WRONG);
		CHECK(!scene.ended);
		authenticate(&scene, &right_key);
		CHECK_INT(take(&scene, EXCHANGE_PACKET_BYTES), NTP_GOOD);
		CHECK_INT(finish(&scene), i > 0);
	}
	CHECK(scene.sample.interleaved);
}

/* What has no right MAC ends nothing, whatever it says; the true answer still counts. */
static void check_refused_by_key(struct scene *scene, size_t size_bytes, unsigned int reject)
{
	uint64_t before = scene->exchange.counts[reject];

	scene->said.stratum = 99;
	CHECK_INT(take(scene, size_bytes), reject);
	CHECK(!scene->ended && scene->exchange.asked);
	CHECK_INT(scene->said.stratum, 99);
	CHECK_INT(scene->exchange.counts[reject], before + 1);
	CHECK(exchange_reject_is_of_key(reject) || reject == EXCHANGE_LONG || reject == NTP_SHORT);
	answer_basic(scene);
	authenticate(scene, &right_key);
	CHECK_INT(take(scene, EXCHANGE_PACKET_BYTES), NTP_GOOD);
	CHECK(scene->ended && finish(scene));
	ask(scene);
	answer_basic(scene);
	authenticate(scene, &right_key);
}

static void test_key_refuses(void)
{
	struct scene scene;

	scene_init_with_key(&scene, false);
	ask(&scene);
	answer_basic(&scene);
	authenticate(&scene, &right_key);
	check_refused_by_key(&scene, 47, NTP_SHORT);
	check_refused_by_key(&scene, NTP_PACKET_BYTES, EXCHANGE_MAC_MISSING);
	for (size_t size = NTP_PACKET_BYTES + 1; size < EXCHANGE_PACKET_BYTES; size++)
		check_refused_by_key(&scene, size, EXCHANGE_MAC_SHORT);
	check_refused_by_key(&scene, EXCHANGE_PACKET_BYTES + 1, EXCHANGE_LONG);
	check_refused_by_key(&scene, EXCHANGE_PACKET_BYTES + 4, EXCHANGE_LONG); /* as long as SHA1's */
	authenticate(&scene, &other_key);
	check_refused_by_key(&scene, EXCHANGE_PACKET_BYTES, EXCHANGE_MAC_WRONG);
	scene.reply[MAC_AT + 3] ^= 1;
	check_refused_by_key(&scene, EXCHANGE_PACKET_BYTES, EXCHANGE_MAC_KEY);
	put_64(scene.reply + MAC_AT, 0);
	check_refused_by_key(&scene, EXCHANGE_PACKET_BYTES, EXCHANGE_MAC_KEY);
	put_64(scene.reply + MAC_AT, 0);
	check_refused_by_key(&scene, NTP_PACKET_BYTES + EXCHANGE_KEY_ID_BYTES, EXCHANGE_CRYPTO_NAK);
	/* Each bit of packet and tag counts; other origins, modes and versions are no answer at all. */
	for (size_t bit = 0; bit < 8 * (size_t)EXCHANGE_PACKET_BYTES; bit++) {
		if (bit / 8 == 0 || (bit / 8 >= 24 && bit / 8 < 32) || (bit / 8 >= MAC_AT && bit / 8 < TAG_AT))
			continue;
		scene.reply[bit / 8] ^= (uint8_t)(1 << bit % 8);
		check_refused_by_key(&scene, EXCHANGE_PACKET_BYTES, EXCHANGE_MAC_WRONG);
	}
	/* Nobody is told to be silent by a packet that anybody could have sent. */
	scene.reply[1] = 0;
	check_refused_by_key(&scene, EXCHANGE_PACKET_BYTES, EXCHANGE_MAC_WRONG);
	scene.reply[1] = 0;
	check_refused_by_key(&scene, NTP_PACKET_BYTES, EXCHANGE_MAC_MISSING);
	scene.reply[1] = 0;
	memcpy(scene.reply + 12, "DENY", 4);
	authenticate(&scene, &right_key);
	CHECK_INT(take(&scene, EXCHANGE_PACKET_BYTES), NTP_KISS_OF_DEATH);
	CHECK(scene.ended);
	CHECK_TEXT(scene.said.kiss, "DENY");
	/* A key that fails here authenticates nothing. */
	ask(&scene);
	answer_basic(&scene);
	authenticate(&scene, &right_key);
	scene.exchange.key.context = NULL;
	CHECK_INT(take(&scene, EXCHANGE_PACKET_BYTES), EXCHANGE_MAC_WRONG);
}

/* The rest is checked as without a key, and first: forgers who do not see requests cost no cipher, and are counted as what they are. */
static void test_key_changes_no_other_check(void)
{
	struct scene scene;

	scene_init_with_key(&scene, false);
	ask(&scene);
	answer_basic(&scene);
	scene.reply[31] ^= 1;
	authenticate(&scene, &right_key);
	CHECK_INT(take(&scene, EXCHANGE_PACKET_BYTES), NTP_ORIGIN);
	authenticate(&scene, &other_key);
	CHECK_INT(take(&scene, EXCHANGE_PACKET_BYTES), NTP_ORIGIN);
	answer_basic(&scene);
	scene.reply[0] = 4 << 3 | 3;
	authenticate(&scene, &right_key);
	CHECK_INT(take(&scene, EXCHANGE_PACKET_BYTES), NTP_MODE);
	answer_basic(&scene);
	scene.reply[1] = 16;
	authenticate(&scene, &right_key);
	CHECK_INT(take(&scene, EXCHANGE_PACKET_BYTES), NTP_STRATUM);
	CHECK(scene.ended);
	ask(&scene);
	answer_basic(&scene);
	authenticate(&scene, &right_key);
	CHECK_INT(take(&scene, EXCHANGE_PACKET_BYTES), NTP_GOOD);
	finish(&scene);
	CHECK_INT(take(&scene, EXCHANGE_PACKET_BYTES), EXCHANGE_DUPLICATE);
	/* Without a key an answer with a MAC is longer than what was asked for. */
	scene_init(&scene, false);
	ask(&scene);
	answer_basic(&scene);
	authenticate(&scene, &right_key);
	CHECK_INT(take(&scene, EXCHANGE_PACKET_BYTES), EXCHANGE_LONG);
	put_64(scene.reply + MAC_AT, 0);
	CHECK_INT(take(&scene, NTP_PACKET_BYTES + EXCHANGE_KEY_ID_BYTES), EXCHANGE_LONG);
}

int main(void)
{
	test_basic();
	test_interleaved();
	test_refused();
	test_sizes_and_sources();
	test_replays();
	test_negative_delay();
	test_rough();
	for (int log2_s = -14; log2_s <= -2; log2_s += 4)
		test_coarse(log2_s);
	test_eras();
	test_key_of_requests();
	test_key_in_interleaved_mode();
	test_key_refuses();
	test_key_changes_no_other_check();
	return check_result();
}
