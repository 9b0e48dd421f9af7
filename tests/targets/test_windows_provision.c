/* SPDX-License-Identifier: Apache-2.0 */
/** bw-provision when the power goes, on any system: here is a machine with one adapter, whose driver heeds one keyword. */
#include <setjmp.h>

int provision_main(void);
#define main provision_main
#include "provision.c" /* NOLINT(bugprone-suspicious-include): its verbs are no business of others */
#undef main

#include "../traffic_gen/check.h"
#include "kinds.h"
#include "port_file.h"

/* In the folder that the test runs in. */
#define UNDO "test-windows-provision-undo.tmp"
#define SETTINGS "test-windows-provision-settings.tmp"
#define OUTPUT "test-windows-provision-output.tmp"

enum { NEVER = 1000 };

static struct adapter adapter = { .name = "Ethernet 2", .up = true };
static char keyword[VALUE_BYTES]; /* in the registry */
static char heeded[VALUE_BYTES];  /* by the driver since it has started */
static int writes_left, refused_starts;
static jmp_buf power_cut;

static void after_a_write(void)
{
	if (--writes_left == 0)
		longjmp(power_cut, 1);
}

static bool keyword_place(const struct machine *machine, const char *setting, char place[PLACE_BYTES], char note[NOTE_BYTES])
{
	(void)machine;
	(void)note;
	snprintf(place, PLACE_BYTES, "KEY\\%s", setting);
	return true;
}

static enum kind_read keyword_read(const char *place, char value[VALUE_BYTES], char note[NOTE_BYTES])
{
	(void)place;
	(void)note;
	snprintf(value, VALUE_BYTES, "%s", keyword);
	return KIND_READ;
}

static bool keyword_write(const char *place, const char *value, char note[NOTE_BYTES])
{
	(void)place;
	(void)note;
	snprintf(keyword, sizeof(keyword), "%s", value);
	after_a_write();
	return true;
}

static enum kind_read adapter_read(const char *place, char value[VALUE_BYTES], char note[NOTE_BYTES])
{
	(void)place;
	(void)note;
	snprintf(value, VALUE_BYTES, adapter.up ? "enabled" : "disabled");
	return KIND_READ;
}

static void start_driver(void)
{
	adapter.up = true;
	memcpy(heeded, keyword, sizeof(heeded));
}

static bool adapter_write(const char *place, const char *value, char note[NOTE_BYTES])
{
	CHECK_TEXT(place, adapter.name);
	(void)note;
	if (strcmp(value, "enabled") == 0 && refused_starts) {
		refused_starts--;
		return false;
	}
	if (strcmp(value, "enabled") != 0)
		adapter.up = false;
	else if (!adapter.up)
		start_driver();
	after_a_write();
	return true;
}

static const struct kind kinds[] = {
	{ "nic", keyword_place, keyword_read, keyword_write, true },
	{ "adapter", keyword_place, adapter_read, adapter_write, false },
};

const struct kind *kind_find(const char *name)
{
	for (int i = 0; i < 2; i++) {
		if (strcmp(kinds[i].name, name) == 0)
			return &kinds[i];
	}
	return NULL;
}

int adapters_list(struct adapter *adapters, int capacity)
{
	(void)capacity;
	adapters[0] = adapter;
	return 1;
}

bool process_is_administrator(void)
{
	return true;
}

void process_print_binary(void)
{
}

bool process_state_folder(char *folder, int size)
{
	(void)folder;
	(void)size;
	return false;
}

enum process_lock process_lock_take(const char *path)
{
	(void)path;
	return LOCK_FAILED;
}

bool process_file_beside(const char *name, char path[PATH_BYTES])
{
	(void)name;
	(void)path;
	return false;
}

int process_arguments(char arguments[ARGUMENTS_MAX][ARGUMENT_BYTES])
{
	(void)arguments;
	return -1;
}

bool facts_print(struct json *json, const struct machine *machine, const char *settings, char error[512])
{
	(void)json;
	(void)machine;
	(void)settings;
	(void)error;
	return false;
}

FILE *file_open(const char *path, const char *mode)
{
	return fopen(path, mode);
}

bool file_close_on_disk(FILE *file)
{
	return !fclose(file);
}

bool file_replace(const char *from, const char *to)
{
	remove(to);
	return !rename(from, to);
}

bool file_remove(const char *path)
{
	return !remove(path) || errno == ENOENT;
}

/* Begin with a machine as it was before the bench came. */
static void begin(void)
{
	FILE *file = fopen(SETTINGS, "wb");

	CHECK(file && fputs("nic *InterruptModeration 0\n", file) >= 0 && fclose(file) == 0);
	remove(UNDO);
	snprintf(keyword, sizeof(keyword), "1");
	start_driver();
}

/* Run a part of a verb; the power goes after so many writes, and the machine starts again. @return what is not as wanted, or -1 */
static int run_until(const char *verb, int writes)
{
	static struct run run;
	FILE *output = fopen(OUTPUT, "wb");
	char error[ERROR_BYTES];

	run = (struct run){ .undo = UNDO, .apply = true, .machine.test = &adapter };
	json_init(&run.json, output);
	writes_left = writes;
	if (setjmp(power_cut) == 0) {
		if (strcmp(verb, "restore") == 0)
			restore(&run);
		else
			CHECK(settings_each(SETTINGS, visit, &run, error));
		if (strcmp(verb, "apply") == 0 && run.restart)
			restart_adapter(&run, adapter.name);
		fclose(output);
		return run.wrong;
	}
	fclose(output);
	if (adapter.up) /* one that is off stays so */
		start_driver();
	return -1;
}

static void check_as_before(void)
{
	struct undo_record records[1];

	CHECK_TEXT(keyword, "1");
	CHECK(adapter.up);
	CHECK_TEXT(heeded, "1");
	CHECK_INT(undo_load(UNDO, records, 1), 0);
}

/* Wherever apply is cut off, restore leaves a driver that runs with its old value. */
static void test_a_power_cut_while_it_applies(void)
{
	for (int writes = 1; writes <= 3; writes++) {
		begin();
		CHECK_INT(run_until("apply", writes), -1);
		CHECK_INT(run_until("restore", NEVER), 0);
		check_as_before();
	}
	begin();
	CHECK_INT(run_until("apply", NEVER), 0);
	CHECK_TEXT(heeded, "0");
	CHECK_INT(run_until("restore", NEVER), 0);
	check_as_before();
}

static void test_a_power_cut_while_it_restores(void)
{
	for (int writes = 1; writes <= 3; writes++) {
		begin();
		CHECK_INT(run_until("apply", NEVER), 0);
		CHECK_INT(run_until("restore", writes), -1);
		CHECK_INT(run_until("restore", NEVER), 0);
		check_as_before();
	}
}

/* A restore that ended before it had started the adapter anew: the registry is right, the driver is not. */
static void test_a_driver_that_has_not_heard_of_it(void)
{
	begin();
	CHECK_INT(run_until("apply", NEVER), 0);
	snprintf(keyword, sizeof(keyword), "1");
	CHECK_TEXT(heeded, "0");
	CHECK_INT(run_until("restore", NEVER), 0);
	check_as_before();
}

static void test_an_adapter_that_does_not_start(void)
{
	begin();
	CHECK_INT(run_until("apply", NEVER), 0);
	refused_starts = 1;
	CHECK_INT(run_until("restore", NEVER), 1);
	CHECK(!adapter.up);
	CHECK_INT(run_until("restore", NEVER), 0);
	check_as_before();
}

int main(void)
{
	test_a_power_cut_while_it_applies();
	test_a_power_cut_while_it_restores();
	test_a_driver_that_has_not_heard_of_it();
	test_an_adapter_that_does_not_start();
	remove(UNDO);
	remove(SETTINGS);
	remove(OUTPUT);
	return check_result();
}
