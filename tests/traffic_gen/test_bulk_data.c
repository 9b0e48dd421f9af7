/* SPDX-License-Identifier: Apache-2.0 */
/** Bulk data: the sum by its definition, and bytes that are random. */
#include <string.h>

#include "check.h"
#include "traffic/bulk/bulk_data.h"

static void test_sum_is_of_bytes_and_places(void)
{
	static const uint8_t data[] = { 3, 0, 5, 255 };
	struct bulk_sum sum = { 0 };

	bulk_sum_add(&sum, data, sizeof(data));
	CHECK_INT(sum.bytes, 263);
	CHECK_INT(sum.sums, 3 * 4 + 0 * 3 + 5 * 2 + 255);
}

static void test_pieces_make_no_difference(void)
{
	uint8_t data[1000];
	struct bulk_sum whole = { 0 }, pieces = { 0 };
	uint64_t state = 7;

	bulk_fill(&state, data, sizeof(data));
	bulk_sum_add(&whole, data, sizeof(data));
	for (size_t at = 0, size = 1; at < sizeof(data); at += size, size = size * 2 % 61)
		bulk_sum_add(&pieces, data + at, at + size < sizeof(data) ? size : sizeof(data) - at);
	CHECK(memcmp(&whole, &pieces, sizeof(whole)) == 0);
}

static void test_bytes_in_another_order_show(void)
{
	static const uint8_t one[] = { 1, 2, 3 }, other[] = { 1, 3, 2 }, shorter[] = { 1, 2 };
	struct bulk_sum a = { 0 }, b = { 0 }, c = { 0 };

	bulk_sum_add(&a, one, sizeof(one));
	bulk_sum_add(&b, other, sizeof(other));
	bulk_sum_add(&c, shorter, sizeof(shorter));
	CHECK(a.sums != b.sums);
	CHECK(a.sums != c.sums);
}

static void test_fill_is_random_and_goes_no_further(void)
{
	uint8_t data[4099] = { 0 };
	uint64_t state = 1;
	int count[256] = { 0 }, seen = 0;

	bulk_fill(&state, data, sizeof(data) - 3);
	CHECK_INT(data[4096], 0);
	bulk_fill(&state, data, 5);
	for (size_t i = 0; i < 4096; i++)
		count[data[i]]++;
	for (int i = 0; i < 256; i++)
		seen += count[i] > 0 && count[i] < 48; /* 16 each on average */
	CHECK_INT(seen, 256);
	CHECK(state != 1);
}

int main(void)
{
	test_sum_is_of_bytes_and_places();
	test_pieces_make_no_difference();
	test_bytes_in_another_order_show();
	test_fill_is_random_and_goes_no_further();
	return check_result();
}
