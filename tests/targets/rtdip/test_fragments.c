/* SPDX-License-Identifier: Apache-2.0 */
/* Messages cut into frames and put together again: whole at every size, and lost as a whole where a frame is. */
#include "fragments.h"

#include <errno.h>
#include <string.h>

#include "check.h"
#include "random.h"

enum { MESSAGE_MAX_BYTES = 65507, FRAMES_MAX = 8192, ROUNDS = 20000 };

static const struct rtdip_address sender = { .port = 7000 };
static uint8_t sent[MESSAGE_MAX_BYTES], room[MESSAGE_MAX_BYTES];
static uint8_t frames[FRAMES_MAX][RTDIP_DATA_MAX_BYTES];
static size_t frame_bytes[FRAMES_MAX];

/* Cut a message of random bytes; return in how many frames. */
static int cut(struct random *random, struct rtdip_fragment *next, size_t size_bytes, size_t frame_max_bytes)
{
	uint32_t message = next->message;
	int count = 0;

	for (size_t i = 0; i < size_bytes; i++)
		sent[i] = (uint8_t)random_bits(random);
	while (next->message == message) {
		CHECK(count < FRAMES_MAX);
		frame_bytes[count] = fragments_cut(next, sent, size_bytes, frames[count], frame_max_bytes);
		count++;
	}
	return count;
}

static void test_every_size_is_whole_in_as_few_frames_as_there_is_room(void)
{
	static const size_t sizes[] = { 0, 1, 4, 1475, 1476, 1477, 2956, 2957, 16384, 65507 }, rooms[] = { 13, 1488, 8988 };
	struct rtdip_fragment next = { UINT32_MAX, 0 };
	struct assembly assembly = { 0 };
	struct random random = { 1 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		for (size_t k = 0; k < sizeof(rooms) / sizeof(*rooms); k++) {
			size_t part_bytes = rooms[k] - RTDIP_FRAGMENT_HEADER_BYTES;
			size_t all_bytes = sizes[i] + FRAGMENTS_LENGTH_BYTES, wanted = (all_bytes + part_bytes - 1) / part_bytes;
			int count;

			if (wanted > FRAMES_MAX)
				continue;
			count = cut(&random, &next, sizes[i], rooms[k]);
			CHECK_INT(count, (int)wanted);
			for (int frame = 0; frame < count - 1; frame++)
				CHECK_INT(fragments_take(&assembly, &sender, frames[frame], frame_bytes[frame], room, sizeof(room)), -EAGAIN);
			CHECK_INT(fragments_take(&assembly, &sender, frames[count - 1], frame_bytes[count - 1], room, sizeof(room)), sizes[i]);
			CHECK_INT(memcmp(room, sent, sizes[i]), 0);
		}
	}
}

/* Of random messages random frames are lost, come twice, or after the next one: what is given is whole, and nothing else is lost. */
static void test_a_message_is_whole_or_lost(void)
{
	struct rtdip_fragment next = { 0 };
	struct assembly assembly = { 0 };
	struct random random = { 2 };
	int wrong = 0, whole = 0, harmed = 0;

	for (int round = 0; round < ROUNDS; round++) {
		size_t size_bytes = (size_t)(random_bits(&random) % 200);
		int count = cut(&random, &next, size_bytes, 13 + (size_t)(random_bits(&random) % 100));
		int harm = (int)(random_bits(&random) % 4), at = (int)(random_bits(&random) % (uint64_t)count), given = 0;

		if (harm == 3 && at == count - 1)
			harm = 0;
		for (int i = 0; i < count; i++) {
			int which = harm == 3 && i == at ? at + 1 : harm == 3 && i == at + 1 ? at : i;

			if (harm == 1 && i == at)
				continue;
			for (int times = harm == 2 && i == at ? 2 : 1; times > 0; times--) {
				int64_t length = fragments_take(&assembly, &sender, frames[which], frame_bytes[which], room, sizeof(room));

				if (length < 0)
					continue;
				given++;
				wrong += (size_t)length != size_bytes || memcmp(room, sent, size_bytes) != 0;
			}
		}
		/* A frame that comes twice harms nothing but a message of one frame, which comes twice. */
		wrong += harm == 0 ? given != 1 : harm == 1 || harm == 3 ? given != 0 : given != (count == 1 ? 2 : 1);
		whole += given;
		harmed += given == 0;
	}
	CHECK_INT(wrong, 0);
	CHECK(whole > ROUNDS / 4 && harmed > ROUNDS / 4);
}

static void test_what_is_no_part_is_refused(void)
{
	struct rtdip_fragment next = { 7, 0 };
	struct assembly assembly = { 0 };
	struct random random = { 3 };

	CHECK_INT(cut(&random, &next, 20, 20), 2 + (20 + 4) % 12);
	CHECK_INT(fragments_take(&assembly, &sender, frames[1], frame_bytes[1], room, sizeof(room)), -EBADMSG);
	CHECK_INT(fragments_take(&assembly, &sender, frames[0], RTDIP_FRAGMENT_HEADER_BYTES, room, sizeof(room)), -EBADMSG);
	CHECK_INT(fragments_take(&assembly, &sender, frames[0], RTDIP_FRAGMENT_HEADER_BYTES + 3, room, sizeof(room)), -EBADMSG);
	CHECK_INT(fragments_take(&assembly, &sender, frames[0], frame_bytes[0], room, 19), -EMSGSIZE);
	CHECK_INT(fragments_take(&assembly, &sender, frames[1], frame_bytes[1], room, sizeof(room)), -EBADMSG);
	CHECK_INT(fragments_take(&assembly, &sender, frames[0], frame_bytes[0], room, 20), -EAGAIN);
	CHECK_INT(fragments_take(&assembly, &sender, frames[1], frame_bytes[1] + 1, room, 20), -EBADMSG);
	CHECK_INT(fragments_take(&assembly, &sender, frames[1], frame_bytes[1], room, 20), -EBADMSG);
}

/* Two senders number their messages alike. */
static void test_a_message_is_one_sender_s(void)
{
	static const struct rtdip_address port = { .port = 7001 }, place = { .mac = { 2 }, .port = 7000 };
	struct rtdip_fragment next = { 0 };
	struct assembly assembly = { 0 };
	struct random random = { 4 };

	CHECK_INT(cut(&random, &next, 20, 20), 2);
	CHECK_INT(fragments_take(&assembly, &sender, frames[0], frame_bytes[0], room, sizeof(room)), -EAGAIN);
	CHECK_INT(fragments_take(&assembly, &port, frames[1], frame_bytes[1], room, sizeof(room)), -EBADMSG);
	CHECK_INT(fragments_take(&assembly, &place, frames[1], frame_bytes[1], room, sizeof(room)), -EBADMSG);
	CHECK_INT(fragments_take(&assembly, &sender, frames[1], frame_bytes[1], room, sizeof(room)), 20);
	CHECK_INT(fragments_take(&assembly, &sender, frames[0], frame_bytes[0], room, sizeof(room)), -EAGAIN);
	CHECK_INT(fragments_take(&assembly, &place, frames[0], frame_bytes[0], room, sizeof(room)), -EAGAIN);
	CHECK_INT(fragments_take(&assembly, &sender, frames[1], frame_bytes[1], room, sizeof(room)), -EBADMSG);
	CHECK_INT(fragments_take(&assembly, &place, frames[1], frame_bytes[1], room, sizeof(room)), 20);
}

int main(void)
{
	test_every_size_is_whole_in_as_few_frames_as_there_is_room();
	test_a_message_is_whole_or_lost();
	test_what_is_no_part_is_refused();
	test_a_message_is_one_sender_s();
	return check_result();
}
