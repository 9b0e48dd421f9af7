/* SPDX-License-Identifier: Apache-2.0 */
/** The undo file and the settings of Windows targets, on any system: this file stands in for their port layer. */
#include <errno.h>
#include <stdlib.h>

#include "../traffic_gen/check.h"
#include "port_file.h"
#include "settings.h"
#include "undo.h"

/* In the folder that the test runs in. */
#define UNDO "test-windows-undo.tmp"
#define SETTINGS "test-windows-settings.tmp"

static int flushed, replaced;
static int refused; /* errno of a file that cannot be opened; 0: it can */

FILE *file_open(const char *path, const char *mode)
{
	errno = refused;
	return refused ? NULL : fopen(path, mode);
}

bool file_close_on_disk(FILE *file)
{
	flushed++;
	return !fclose(file);
}

bool file_replace(const char *from, const char *to)
{
	replaced++;
	remove(to);
	return !rename(from, to);
}

bool file_remove(const char *path)
{
	return !remove(path) || errno == ENOENT;
}

static const struct kind some_kind = { .name = "registry" };

const struct kind *kind_find(const char *name)
{
	return strcmp(name, some_kind.name) == 0 ? &some_kind : NULL;
}

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "wb");

	if (!file || fputs(text, file) < 0 || fclose(file)) {
		perror(path);
		exit(2);
	}
}

static void test_the_oldest_value_of_a_place_stays(void)
{
	struct undo_record records[4];

	remove(UNDO);
	CHECK_INT(undo_load(UNDO, records, 4), 0);
	flushed = 0;
	CHECK(undo_record(UNDO, "registry", "HKLM\\A\\b", "7"));
	CHECK(undo_record(UNDO, "registry", "HKLM\\A\\b", "8"));
	CHECK(undo_record(UNDO, "power", "scheme", "absent"));
	CHECK_INT(flushed, 2); /* on the disk before the setting is made; the second one was known */
	CHECK_INT(undo_load(UNDO, records, 4), 2);
	CHECK_TEXT(records[0].place, "HKLM\\A\\b");
	CHECK_TEXT(records[0].value, "7");
	CHECK_TEXT(records[1].kind, "power");
}

static void test_a_torn_record_is_left_out_and_closed(void)
{
	struct undo_record records[4];

	write_file(UNDO, "benchwright.undo/1\nregistry\tHKLM\\A\\b\t7\tend\nregistry\tHKLM\\A\\c\t1");
	CHECK_INT(undo_load(UNDO, records, 4), 1);
	CHECK(undo_record(UNDO, "registry", "HKLM\\A\\d", "9"));
	CHECK_INT(undo_load(UNDO, records, 4), 2);
	CHECK_TEXT(records[1].place, "HKLM\\A\\d");
}

static void test_what_is_left_replaces_the_file_and_nothing_removes_it(void)
{
	struct undo_record records[4] = { { "registry", "HKLM\\A\\b", "7" }, { "power", "scheme", "x" } };

	replaced = 0;
	CHECK(undo_keep(UNDO, records, 2));
	CHECK_INT(replaced, 1);
	CHECK_INT(undo_load(UNDO, records, 4), 2);
	CHECK_TEXT(records[1].value, "x");
	CHECK(undo_keep(UNDO, records, 0));
	CHECK(!fopen(UNDO, "rb"));
	CHECK(undo_keep(UNDO, records, 0));
}

static void test_a_file_that_cannot_be_read_is_not_an_empty_one(void)
{
	struct undo_record records[4];

	write_file(UNDO, "benchwright.undo/1\nregistry\tHKLM\\A\\b\t7\tend\n");
	refused = EACCES;
	CHECK_INT(undo_load(UNDO, records, 4), -EACCES);
	CHECK(!undo_record(UNDO, "registry", "HKLM\\A\\c", "1"));
	refused = 0;
	write_file(UNDO, "something else\nregistry\tHKLM\\A\\b\t7\tend\n");
	CHECK_INT(undo_load(UNDO, records, 4), -EILSEQ);
	CHECK(!undo_record(UNDO, "registry", "HKLM\\A\\c", "1"));
}

static void test_no_record_beyond_the_room_is_dropped(void)
{
	struct undo_record records[2];

	write_file(UNDO, "benchwright.undo/1\na\tb\tc\tend\na\tc\td\tend\na\td\te\tend\n");
	CHECK_INT(undo_load(UNDO, records, 2), -EILSEQ);
}

static void test_the_first_line_may_be_cut_off(void)
{
	struct undo_record records[4];

	write_file(UNDO, "benchwri");
	CHECK_INT(undo_load(UNDO, records, 4), 0);
	CHECK(undo_record(UNDO, "registry", "HKLM\\A\\d", "9"));
	CHECK_INT(undo_load(UNDO, records, 4), 1);
}

static void test_a_value_that_would_be_read_as_another_is_not_kept(void)
{
	remove(UNDO);
	CHECK(!undo_record(UNDO, "text", "HKLM\\A\\b", "one\ttwo"));
	CHECK(!undo_record(UNDO, "text", "HKLM\\A\\b", "one\r\ntwo"));
	CHECK(!undo_record(UNDO, "text", "HKLM\\A\tx\\b", "one"));
	remove(UNDO);
}

static int visits;
static struct setting last;

static void visit(void *context, const struct setting *setting)
{
	(void)context;
	visits++;
	last = *setting;
}

static void test_settings_with_reasons(void)
{
	char error[ERROR_BYTES] = "";

	visits = 0;
	write_file(SETTINGS, "# licence\n\n# One reason\n# in two lines.\r\nregistry \"HKLM\\A B\\c\" >=10\n");
	CHECK(settings_each(SETTINGS, visit, NULL, error));
	CHECK_INT(visits, 1);
	CHECK_TEXT(last.name, "HKLM\\A B\\c");
	CHECK_TEXT(last.why, "One reason in two lines.");
	CHECK_TEXT(last.wanted, ">=10");
}

static void test_wrong_settings_are_named_by_their_line(void)
{
	char error[ERROR_BYTES] = "";

	write_file(SETTINGS, "registry a 1\nmagic b 2\n");
	CHECK(!settings_each(SETTINGS, visit, NULL, error));
	CHECK_TEXT(error, SETTINGS ":2: unknown kind");
	write_file(SETTINGS, "registry a\n");
	CHECK(!settings_each(SETTINGS, visit, NULL, error));
	CHECK_TEXT(error, SETTINGS ":1: must be KIND NAME WANTED");
	write_file(SETTINGS, "registry a 1 2\n");
	CHECK(!settings_each(SETTINGS, visit, NULL, error));
	remove(SETTINGS);
	CHECK(!settings_each(SETTINGS, visit, NULL, error));
}

static bool met(const char *wanted, const char *value, const char *goal_wanted)
{
	struct setting setting = { .kind = &some_kind };
	char goal[VALUE_BYTES];
	bool is_met;

	snprintf(setting.wanted, sizeof(setting.wanted), "%s", wanted);
	is_met = setting_met(&setting, value, goal);
	CHECK_TEXT(goal, goal_wanted);
	return is_met;
}

static void test_values_against_what_is_wanted(void)
{
	CHECK(met("Enabled", "enabled", "Enabled"));
	CHECK(!met("1", "10", "1"));
	CHECK(met(">=10", "10", "10"));
	CHECK(!met(">=10", "9", "10"));
	CHECK(met("<=5000", "-1", "5000"));
	CHECK(!met("<=5000", "absent", "5000"));
	CHECK(!met(">=10", "", "10"));
}

int main(void)
{
	test_the_oldest_value_of_a_place_stays();
	test_a_torn_record_is_left_out_and_closed();
	test_what_is_left_replaces_the_file_and_nothing_removes_it();
	test_a_file_that_cannot_be_read_is_not_an_empty_one();
	test_no_record_beyond_the_room_is_dropped();
	test_the_first_line_may_be_cut_off();
	test_a_value_that_would_be_read_as_another_is_not_kept();
	test_settings_with_reasons();
	test_wrong_settings_are_named_by_their_line();
	test_values_against_what_is_wanted();
	return check_result();
}
