/* SPDX-License-Identifier: Apache-2.0 */
/** Files of symmetric keys in chrony's format: what is found, and what is refused with file, line, field and range. */
#include <errno.h>

#include "../check.h"
#include "timeservice/keys.h"

#define HEX_128 "HEX:000102030405060708090A0b0c0d0e0f"
#define HEX_256 HEX_128 "101112131415161718191a1b1c1d1e1f"

static int find(const char *text, uint32_t id, struct key *key, char error[KEYS_ERROR_BYTES])
{
	memset(key, 0, sizeof(*key));
	error[0] = '\0';
	return keys_find("timed.keys", text, strlen(text), id, key, error);
}

static void check_counting(const struct key *key, size_t size_bytes)
{
	CHECK_INT(key->size_bytes, size_bytes);
	for (size_t i = 0; i < key->size_bytes; i++)
		CHECK_INT(key->bytes[i], i);
}

static void test_found(void)
{
	static const char text[] =
		"# keys\n! of\n; the\n% lab\n\n   \t\r\n"
		"1 AES128 " HEX_128 "\n"
		"  2\tAES256   " HEX_256 "  \r\n"
		"3 AES128 0123456789abcdef\n4 AES128 ASCII:HEX:0123456789ab\n"
		"10 MD5 ASCII:tulip\n11 oak\n12 SHA1 HEX:1234\n13 SHA3-512 x\n"
		"4294967295 AES128 #123456789abcdef"; /* no end of line; # begins no word's comment */
	struct key key;
	char error[KEYS_ERROR_BYTES];

	CHECK_INT(find(text, 1, &key, error), 0);
	check_counting(&key, 16);
	CHECK_INT(find(text, 2, &key, error), 0);
	check_counting(&key, 32);
	CHECK_INT(find(text, 3, &key, error), 0);
	CHECK(key.size_bytes == 16 && memcmp(key.bytes, "0123456789abcdef", 16) == 0);
	CHECK_INT(find(text, 4, &key, error), 0);
	CHECK(key.size_bytes == 16 && memcmp(key.bytes, "HEX:0123456789ab", 16) == 0);
	CHECK_INT(find(text, UINT32_MAX, &key, error), 0);
	CHECK(key.size_bytes == 16 && memcmp(key.bytes, "#123456789abcdef", 16) == 0);
	CHECK_TEXT(error, "");
	CHECK_INT(find(text, 5, &key, error), -ENOENT);
	CHECK_TEXT(error, "timed.keys: no key 5, which a server names");
	CHECK_INT(find("", 1, &key, error), -ENOENT);
}

static void test_refused(void)
{
	static const struct {
		const char *text, *error;
	} cases[] = {
		{ "1\n", "timed.keys:1: line: 1 words; allowed 3: ID TYPE KEY" },
		{ "\n1 AES128 a b\n", "timed.keys:2: line: 4 words; allowed 3: ID TYPE KEY" },
		{ "0 AES128 0123456789abcdef\n", "timed.keys:1: id: \"0\"; allowed 1..4294967295" },
		{ "4294967296 AES128 0123456789abcdef\n", "timed.keys:1: id: \"4294967296\"; allowed 1..4294967295" },
		{ "-1 AES128 0123456789abcdef\n", "timed.keys:1: id: \"-1\"; allowed 1..4294967295" },
		{ "one AES128 0123456789abcdef\n", "timed.keys:1: id: \"one\"; allowed 1..4294967295" },
		{ "1111111111111111111111111111111111111 AES128 0123456789abcdef\n",
		  "timed.keys:1: id: \"1111111111111111111111111111111\"; allowed 1..4294967295" },
		{ "1 AES192 0123456789abcdef\n",
		  "timed.keys:1: type: \"AES192\" is unknown; allowed AES128, AES256 (chrony's others are passed over)" },
		{ "1 aes128 0123456789abcdef\n",
		  "timed.keys:1: type: \"aes128\" is unknown; allowed AES128, AES256 (chrony's others are passed over)" },
		{ "1 AES128 0123456789abcde\n", "timed.keys:1: key: 15 characters; allowed 16 of AES128" },
		{ "1 AES128 ASCII:0123456789abcdef0\n", "timed.keys:1: key: 17 characters; allowed 16 of AES128" },
		{ "1 AES256 " HEX_128 "\n", "timed.keys:1: key: 32 hexadecimal digits; allowed 64 of AES256" },
		{ "1 AES128 " HEX_128 "0\n", "timed.keys:1: key: 33 hexadecimal digits; allowed 32 of AES128" },
		{ "1 AES128 HEX:0g\n",
		  "timed.keys:1: key: character 2 after HEX: is no hexadecimal digit; allowed 0..9, A..F, a..f" },
		/* Not the one that is asked for, but wrong. */
		{ "1 AES128 0123456789abcdef\n2 AES128 short\n", "timed.keys:2: key: 5 characters; allowed 16 of AES128" },
		{ "1 AES128 0123456789abcdef\n1 AES128 fedcba9876543210\n", "timed.keys:2: id: 1 is there twice" },
		{ "1 SHA1 HEX:0123\n", "timed.keys:1: type: key 1 is of SHA1; allowed AES128, AES256" },
		{ "1 tulip\n", "timed.keys:1: type: key 1 is of MD5; allowed AES128, AES256" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct key key;
		char error[KEYS_ERROR_BYTES];

		CHECK_INT(find(cases[i].text, 1, &key, error), -EINVAL);
		CHECK_TEXT(error, cases[i].error);
	}
}

/* A text with an end in it, and a file's name that is too long for a line. */
static void test_hostile(void)
{
	static const char text[] = "1\0 AES128 0123456789abcdef\n";
	char error[KEYS_ERROR_BYTES], path[1000];
	struct key key;

	CHECK_INT(keys_find("timed.keys", text, sizeof(text) - 1, 1, &key, error), -EINVAL);
	CHECK_TEXT(error, "timed.keys:1: id: \"1.\"; allowed 1..4294967295");
	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	CHECK_INT(keys_find(path, "1", 1, 1, &key, error), -EINVAL);
	CHECK(strlen(error) < KEYS_ERROR_BYTES);
}

int main(void)
{
	test_found();
	test_refused();
	test_hostile();
	return check_result();
}
