/* SPDX-License-Identifier: Apache-2.0 */
/** Settings of bw-timed: files and command lines, and what is refused with file, line, field and range. */
#include <errno.h>

#include "../check.h"
#include "timeservice/settings.h"

static int read_text(struct settings *settings, const char *text, char error[SETTINGS_ERROR_BYTES])
{
	*settings = settings_default();
	error[0] = '\0';
	return settings_read_text(settings, "timed.toml", text, strlen(text), error);
}

static void test_file(void)
{
	struct settings settings;
	char error[SETTINGS_ERROR_BYTES];

	CHECK_INT(read_text(&settings,
			    "[service]\ninterval_ms = 60_000\ndrift_limit_ppb = 2_000\nasymmetry_percent = 5\nfeed = \"chrony\"\nkernel_stamps = false\nlog_exchanges = true\n"
			    "page = \"/tmp/page\"\nkey_file = \"/tmp/keys\"\n\n[[server]]\naddress = \"10.77.0.1\"\n\n[[server]]\naddress = \"10.77.0.2\"\n"
			    "port = 11123\nmin_delay_ns = 20_000\nroot_distance_ns = 0\ninterleaved = false\nkey = 4294967295\n",
			    error),
		  0);
	CHECK_INT(settings.interval_ms, 60000);
	CHECK_INT(settings.batch, 16);
	CHECK_INT(settings.estimate.drift_limit_ppb, 2000);
	CHECK_INT(settings.estimate.asymmetry_percent, 5);
	CHECK_INT(settings.feed, FEED_CHRONY);
	CHECK(settings.user_stamps);
	CHECK(settings.log_exchanges);
	CHECK_TEXT(settings.page, "/tmp/page");
	CHECK_TEXT(settings.key_file, "/tmp/keys");
	CHECK_INT(settings.servers[0].key, 0);
	CHECK_INT(settings.servers[1].key, 4294967295);
	CHECK_INT(settings.server_count, 2);
	CHECK_INT(settings.servers[0].address.port, 123);
	CHECK_INT(settings.servers[0].root_distance_ns, SERVER_ROOT_AS_SAID);
	CHECK(settings.servers[0].interleave);
	CHECK_INT(settings.servers[1].address.port, 11123);
	CHECK_INT(settings.servers[1].min_way_ns, 20000);
	CHECK_INT(settings.servers[1].root_distance_ns, 0);
	CHECK(!settings.servers[1].interleave);
	CHECK_INT(read_text(&settings, "", error), 0);
}

static void test_file_refused(void)
{
	static const struct {
		const char *text, *error;
	} cases[] = {
		{ "[service]\ninterval_ms = 99\n", "timed.toml:2: [service]: interval_ms: 99 is out of range; allowed 100..86400000" },
		{ "[service]\nspeed = 1\n", "timed.toml:2: [service]: unknown key \"speed\"" },
		{ "[service]\nfeed = \"gps\"\n", "timed.toml:2: [service]: feed: \"gps\" is unknown; allowed \"none\", \"kernel\", \"chrony\"" },
		{ "[service]\nkey_file = \"\"\n", "timed.toml:2: [service]: key_file: 0 bytes; allowed 1..511 bytes" },
		{ "[[server]]\naddress = \"10.0.0.1\"\nkey = 0\n",
		  "timed.toml:3: [[server]] address \"10.0.0.1\": key: 0 is out of range; allowed 1..4294967295" },
		{ "[[server]]\naddress = \"10.0.0.1\"\nkey = 4294967296\n",
		  "timed.toml:3: [[server]] address \"10.0.0.1\": key: 4294967296 is out of range; allowed 1..4294967295" },
		{ "[clock]\n", "timed.toml:1: unknown table \"clock\"" },
		{ "[[server]]\nport = 5\n", "timed.toml:1: [[server]]: address: missing" },
		{ "[[server]]\naddress = \"10.0.0.1\"\n[[server]]\naddress = \"10.0.0.1\"\n",
		  "timed.toml:4: [[server]] address \"10.0.0.1\": address: is there twice" },
		{ "[[server]]\naddress = \"time\"\n",
		  "timed.toml:2: [[server]] address \"time\": address: \"time\"; allowed an IPv4 address, 0.0.0.0..255.255.255.255" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct settings settings;
		char error[SETTINGS_ERROR_BYTES];

		CHECK_INT(read_text(&settings, cases[i].text, error), -EINVAL);
		CHECK_TEXT(error, cases[i].error);
	}
}

static void test_servers(void)
{
	static const char *const wrong[] = { "", "time.example", "10.0.0.1:0", "10.0.0.1,", "10.0.0.1,min-delay-ns", "10.0.0.1,min-delay-ns=-1",
					     "10.0.0.1,interleaved=2", "10.0.0.1,color=3", "10.0.0.256", "10.0.0.1,key",
					     "10.0.0.1,key=0", "10.0.0.1,key=4294967296" };
	struct settings settings = settings_default();
	char error[SETTINGS_ERROR_BYTES];

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		int err = settings_add_server(&settings, wrong[i], error);

		/* A comma at the end says nothing, and nothing wrong. */
		CHECK_THAT(err == -EINVAL || i == 3, "\"%s\" was taken", wrong[i]);
	}
	settings.server_count = 0;
	CHECK_INT(settings_add_server(&settings, "10.0.0.1:1123,min-delay-ns=5000,interleaved=0,root-distance-ns=7,key=9", error), 0);
	CHECK_INT(settings.servers[0].min_way_ns, 5000);
	CHECK_INT(settings.servers[0].key, 9);
	CHECK_INT(settings.servers[0].root_distance_ns, 7);
	CHECK_INT(settings.servers[0].address.port, 1123);
	CHECK(!settings.servers[0].interleave);
	CHECK_INT(settings_add_server(&settings, "10.0.0.1:1123", error), -EINVAL); /* twice */
	for (int i = 1; i < SELECT_MAX; i++) {
		settings.servers[i].address.ipv4 = (uint32_t)i;
		settings.server_count++;
	}
	CHECK_INT(settings_add_server(&settings, "10.0.0.2", error), -EINVAL);
}

static void test_command_line(void)
{
	char tool[] = "bw-timed", server[] = "--server", one[] = "10.0.0.1", two[] = "10.0.0.2", batch[] = "--batch=4", bad[] = "--batch=65",
	     stamps[] = "--user-stamps", interleave[] = "--no-interleave", min[] = "--min-servers=3", key[] = "10.0.0.3,key=5", file[] = "--key-file=keys";
	char *good_line[] = { tool, server, one, server, two, batch, stamps, interleave };
	char *bad_line[] = { tool, server, one, bad }, *none[] = { tool }, *too_many[] = { tool, server, one, min },
	     *key_line[] = { tool, server, key, file };
	struct settings settings = settings_default();

	CHECK_INT(settings_parse(&settings, 8, good_line), -1);
	CHECK_INT(settings.server_count, 2);
	CHECK_INT(settings.batch, 4);
	CHECK(settings.servers[1].user_stamps && !settings.servers[1].interleave);
	settings = settings_default();
	CHECK_INT(settings_parse(&settings, 4, bad_line), 2);
	CHECK_INT(settings_parse(&settings, 1, none), 2);
	settings = settings_default();
	CHECK_INT(settings_parse(&settings, 4, too_many), 2);
	settings = settings_default();
	CHECK_INT(settings_parse(&settings, 3, key_line), 2); /* a key, but no file of them */
	settings = settings_default();
	CHECK_INT(settings_parse(&settings, 4, key_line), -1);
	CHECK_TEXT(settings.key_file, "keys");
	CHECK_INT(settings.servers[0].key, 5);
}

int main(void)
{
	test_file();
	test_file_refused();
	test_servers();
	test_command_line();
	return check_result();
}
