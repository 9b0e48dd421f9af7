/* SPDX-License-Identifier: Apache-2.0 */
/* What is read from and written as text: addresses, options, JSON lines. */
#include <errno.h>
#include <stdlib.h>

#include "base/address.h"
#include "check.h"
#include "base/json.h"
#include "config/options.h"

static void test_addresses(void)
{
	static const char *const bad[] = { "", "1.2.3", "1.2.3.4.5", "1.2.3.256", "01.2.3.4", "1.2.3.4 ", " 1.2.3.4",
					   "+1.2.3.4", "1..3.4", "1.2.3.4:", "a.b.c.d", "4294967297.0.0.0" };
	static const char *const bad_ports[] = { "1.2.3.4", "1.2.3.4:", "1.2.3.4:0", "1.2.3.4:65536", "1.2.3.4:1x",
						 "1.2.3.4:-1", "1.2.3.4:01" };
	struct address address = { 0 };
	char text[ADDRESS_TEXT_BYTES];
	uint32_t ipv4 = 5;

	CHECK_INT(address_parse_ipv4("10.77.0.100", &ipv4), 0);
	CHECK_INT(ipv4, 0x0a4d0064);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK_THAT(address_parse_ipv4(bad[i], &ipv4) == -EINVAL, "\"%s\" was taken", bad[i]);
	CHECK_INT(ipv4, 0x0a4d0064);
	CHECK_INT(address_parse("255.255.255.255:65535", &address), 0);
	CHECK_TEXT(address_format(&address, text), "255.255.255.255:65535");
	for (size_t i = 0; i < sizeof(bad_ports) / sizeof(bad_ports[0]); i++)
		CHECK_THAT(address_parse(bad_ports[i], &address) == -EINVAL, "\"%s\" was taken", bad_ports[i]);
	address.port = 0;
	CHECK_TEXT(address_format(&address, text), "255.255.255.255");
}

/* What is read as IPv6, and how it is written: RFC 5952, clauses 4.1 to 4.3. */
static void test_addresses_of_ipv6(void)
{
	static const char *const rows[][2] = {
		{ "fd98::1", "fd98::1" }, { "::", "::" }, { "::1", "::1" }, { "fd98::", "fd98::" }, { "2001:DB8::A", "2001:db8::a" },
		{ "2001:0db8:0:0:1:0:0:1", "2001:db8::1:0:0:1" }, { "2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1" },
		{ "2001:0:0:1:0:0:0:1", "2001:0:0:1::1" }, { "1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0" }, { "::2:3:4:5:6:7:8", "0:2:3:4:5:6:7:8" },
		{ "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff" }, { "10.77.0.1", "10.77.0.1" },
	};
	static const char *const bad[] = { "", ":", ":::", "1", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "1::2::3", "1:2:3:4:5:6:7:8::", "12345::",
					   "g::", "fd98::1%eth0", "[fd98::1]", "fd98::1 ", ":1::", "1:", "::ffff:10.77.0.1", "::ffff:a4d:1",
					   "1:2:3:4::5:6:7:8" };
	static const char *const bad_ports[] = { "fd98::1:5001", "[fd98::1]", "[fd98::1]:", "[fd98::1]:0", "[fd98::1:5001", "[10.77.0.1]:5001" };
	struct address address = { 0 }, other, any6 = { .is_ipv6 = true }, any4 = { 0 };
	char text[ADDRESS_TEXT_BYTES];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		CHECK_THAT(address_parse_ip(rows[i][0], &address) == 0, "\"%s\" was refused", rows[i][0]);
		CHECK_TEXT(address_format(&address, text), rows[i][1]);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK_THAT(address_parse_ip(bad[i], &address) == -EINVAL, "\"%s\" was taken", bad[i]);
	for (size_t i = 0; i < sizeof(bad_ports) / sizeof(bad_ports[0]); i++)
		CHECK_THAT(address_parse(bad_ports[i], &address) == -EINVAL, "\"%s\" was taken", bad_ports[i]);
	CHECK_TEXT(address_format(&address, text), "10.77.0.1");
	CHECK_INT(address_parse("[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535", &address), 0);
	CHECK_TEXT(address_format(&address, text), "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535");
	other = address_at(&address, 1);
	CHECK(other.port == 1 && address_same_ip(&address, &other) && !address_same_ip(&any4, &any6));
	other.ipv6[15] = 0;
	CHECK(!address_same_ip(&address, &other) && address_same_ip(&any6, &any6));
}

static void test_numbers(void)
{
	static const char *const bad[] = { "", "-", " 1", "1 ", "+1", "0x10", "1e3", "1.0", "one" };
	int64_t value = 5;

	CHECK_INT(option_parse_int("-20", -20, 20, &value), 0);
	CHECK_INT(value, -20);
	CHECK_INT(option_parse_int("21", -20, 20, &value), -ERANGE);
	CHECK_INT(option_parse_int("99999999999999999999", INT64_MIN, INT64_MAX, &value), -ERANGE);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK_THAT(option_parse_int(bad[i], -100, 100, &value) == -EINVAL, "\"%s\" was taken", bad[i]);
	CHECK_INT(value, -20);
}

static void test_command_line(void)
{
	static struct option_list list;
	bool flag = false;
	int64_t number = 1;
	const char *paths[1];
	const struct option options[] = {
		{ .name = "list", .kind = OPTION_LIST, .target = &list, .min = 1, .max = 9, .argument = "N", .list_all = true, .help = "" },
		{ .name = "flag", .kind = OPTION_FLAG, .target = &flag, .help = "" },
		{ .name = "number", .kind = OPTION_INT, .target = &number, .min = 0, .max = 99, .argument = "N", .help = "" },
		{ .name = NULL },
	};
	const struct command command = { .name = "test", .usage = "PLAN", .about = "", .options = options,
					 .positional_min = 1, .positional_max = 1 };
	char *good[] = { "verb", "--list", "3,9", "plan.toml", "--flag", "--number=7" };
	char *unknown[] = { "verb", "plan.toml", "--nonsense" };
	char *surplus[] = { "verb", "plan.toml", "other" };
	char *missing[] = { "verb" };
	char *range[] = { "verb", "plan.toml", "--list", "3,10" };
	char *empty[] = { "verb", "plan.toml", "--list", "3,,4" };
	char *valueless[] = { "verb", "plan.toml", "--number" };

	CHECK_INT(options_parse(&command, 6, good, paths), 1);
	CHECK_TEXT(paths[0], "plan.toml");
	CHECK(flag && number == 7 && list.count == 2 && list.values[0] == 3 && list.values[1] == 9);
	CHECK_INT(options_parse(&command, 3, unknown, paths), -EINVAL);
	CHECK_INT(options_parse(&command, 3, surplus, paths), -EINVAL);
	CHECK_INT(options_parse(&command, 1, missing, paths), -EINVAL);
	CHECK_INT(options_parse(&command, 4, range, paths), -EINVAL);
	CHECK_INT(options_parse(&command, 4, empty, paths), -EINVAL);
	CHECK_INT(options_parse(&command, 3, valueless, paths), -EINVAL);
}

static void test_json_line(void)
{
	char line[512] = "";
	FILE *file = tmpfile();
	struct json json;

	if (!file) {
		CHECK(!"a temporary file can be opened");
		return;
	}
	json_init(&json, file);
	json_object_open(&json, NULL);
	json_string(&json, "text", "a\"b\\c\n\x01\xc3\xa9\xff\xed\xa0\x80");
	json_int(&json, "low", INT64_MIN);
	json_uint(&json, "high", UINT64_MAX);
	json_double(&json, "nan", 0.0 / (json.depth - 1.0));
	json_double(&json, "half", 0.5);
	json_hex64(&json, "nonce", 255);
	json_array_open(&json, "list");
	json_bool(&json, NULL, true);
	json_null(&json, NULL);
	json_object_open(&json, NULL);
	json_object_close(&json);
	json_array_close(&json);
	json_object_close(&json);
	CHECK_INT(json_line_end(&json), 0);
	rewind(file);
	CHECK(fgets(line, sizeof(line), file) != NULL);
	CHECK_TEXT(line, "{\"text\":\"a\\\"b\\\\c\\u000a\\u0001\xc3\xa9\\ufffd\\ufffd\\ufffd\\ufffd\","
			 "\"low\":-9223372036854775808,\"high\":18446744073709551615,\"nan\":null,\"half\":0.5,"
			 "\"nonce\":\"00000000000000ff\",\"list\":[true,null,{}]}\n");
	fclose(file);
}

int main(void)
{
	test_addresses();
	test_addresses_of_ipv6();
	test_numbers();
	test_command_line();
	test_json_line();
	return check_result();
}
