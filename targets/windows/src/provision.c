/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bw-provision - prepare a Windows machine to be measured, say what it is, and put it back. To be run as an administrator.
 *
 *   bw-provision [--interface NAME] [--settings FILE] [--undo NAME] VERB
 *
 *   check     compare every setting with what settings.conf wants; changes nothing
 *   apply     set what differs, old values first into the undo file; what is right already is not touched
 *   restore   put every old value back; harmless when there is none, after half an apply, and twice
 *   facts     print what this machine is, as one JSON object; the same facts give the same bytes
 *
 *   --interface NAME  the test network's adapter, by its name ("Ethernet 2") or GUID; without it no setting of an adapter applies,
 *                     and the control network's is never touched
 *   --settings FILE   instead of settings.conf beside this program
 *   --undo NAME       where old values go: undo (default), or stack.undo for the settings of a network stack. `restore` gives back
 *                     what is in stack.undo alone; without this option also what a network stack has left, first
 *
 * Output and exit codes are those of targets/linux-rt/provision/provision.sh: items as NDJSON, then a summary; 0 all is as
 * wanted; 1 something is not; 2 bad argument or settings; 3 no administrator; 5 another provisioning runs.
 * Files are in %BENCHWRIGHT_STATE%, else in %ProgramFiles%\Benchwright\state.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "facts.h"
#include "base/json.h"
#include "port_machine.h"
#include "port_process.h"
#include "settings.h"
#include "text.h"
#include "undo.h"

enum exit_code { EXIT_AS_WANTED = 0, EXIT_NOT_AS_WANTED = 1, EXIT_BAD_INPUT = 2, EXIT_NO_RIGHT = 3, EXIT_BUSY = 5 };

#define MACHINE_UNDO "undo"
#define STACK_UNDO "stack.undo"

struct run {
	struct json json;
	struct machine machine;
	char folder[PATH_BYTES - 16], undo[PATH_BYTES];
	const char *undo_name;
	bool apply;
	bool restart; /* a setting was changed that its adapter heeds at its start */
	int items, ok, wrong, absent, changed;
};

struct item {
	const char *kind, *place, *status, *wanted, *found, *why, *note;
	bool changed;
};

static void report(struct run *run, const struct item *item)
{
	char label[PLACE_BYTES + 40];
	bool wrong = strcmp(item->status, "wrong") == 0;

	run->items++;
	run->changed += item->changed;
	run->wrong += wrong;
	run->ok += strcmp(item->status, "ok") == 0;
	run->absent += strcmp(item->status, "not applicable") == 0;
	snprintf(label, sizeof(label), "%s %s", item->kind, item->place);
	json_object_open(&run->json, NULL);
	json_string(&run->json, "type", "item");
	json_string(&run->json, "item", label);
	json_string(&run->json, "status", item->status);
	json_bool(&run->json, "ok", !wrong);
	json_string(&run->json, "wanted", item->wanted);
	json_string(&run->json, "found", item->found);
	json_bool(&run->json, "changed", item->changed);
	json_string(&run->json, "why", item->why);
	json_string(&run->json, "note", item->note);
	json_object_close(&run->json);
	json_line_end(&run->json);
}

static void summarise(struct run *run, const char *verb)
{
	json_object_open(&run->json, NULL);
	json_string(&run->json, "type", "summary");
	json_string(&run->json, "verb", verb);
	json_int(&run->json, "items", run->items);
	json_int(&run->json, "ok", run->ok);
	json_int(&run->json, "wrong", run->wrong);
	json_int(&run->json, "not_applicable", run->absent);
	json_int(&run->json, "changed", run->changed);
	json_object_close(&run->json);
	json_line_end(&run->json);
}

/* Write down what a place holds; before it, for what a driver reads when it starts, that the adapter is to be started anew. */
static bool remember(const struct run *run, const struct kind *kind, const char *place, const char *found)
{
	if (kind->of_adapter && !undo_record(run->undo, "adapter", run->machine.test->name, "enabled"))
		return false;
	return undo_record(run->undo, kind->name, place, found);
}

/* Check one setting, or apply it. */
static void visit(void *argument, const struct setting *setting)
{
	struct run *run = argument;
	const struct kind *kind = setting->kind;
	char place[PLACE_BYTES], found[VALUE_BYTES] = "", now[VALUE_BYTES], goal[VALUE_BYTES], note[NOTE_BYTES] = "";
	struct item item = { .kind = kind->name, .place = setting->name, .status = "not applicable", .wanted = setting->wanted,
			     .found = found, .why = setting->why, .note = note };

	if (!kind->place(&run->machine, setting->name, place, note)) {
		report(run, &item);
		return;
	}
	item.place = place;
	switch (kind->read(place, found, note)) {
	case KIND_READ:
		break;
	case KIND_UNREADABLE:
		item.status = "wrong";
		/* fall through */
	case KIND_MISSING:
		found[0] = '\0';
		report(run, &item);
		return;
	}
	if (setting_met(setting, found, goal)) {
		item.status = "ok";
	} else if (!run->apply || !kind->write) {
		item.status = "wrong";
	} else if (!remember(run, kind, place, found)) {
		item.status = "wrong";
		snprintf(note, sizeof(note), "the old value cannot be written to %.180s", run->undo);
	} else if (kind->write(place, goal, note) && kind->read(place, now, note) == KIND_READ && setting_met(setting, now, goal)) {
		item.status = "ok";
		item.changed = true;
		run->restart |= kind->of_adapter;
	} else {
		item.status = "wrong";
		if (!note[0])
			snprintf(note, sizeof(note), "it did not stay");
	}
	report(run, &item);
}

/* Start the adapter anew, so that its driver reads its settings; the undo file has said first that it was on. */
static bool restart_adapter(struct run *run, const char *name)
{
	const struct kind *kind = kind_find("adapter");
	char note[NOTE_BYTES] = "";
	struct item item = { .kind = kind->name, .place = name, .status = "ok", .wanted = "enabled", .found = "enabled",
			     .why = "a driver reads its settings when it starts", .note = note, .changed = true };

	if (!undo_record(run->undo, kind->name, name, "enabled") || !kind->write(name, "disabled", note) ||
	    !kind->write(name, "enabled", note)) {
		item.status = "wrong";
		item.changed = false;
	}
	report(run, &item);
	return item.changed;
}

/* Put one place back. @return false where it is not as it was */
static bool put_back(struct run *run, const struct undo_record *record)
{
	const struct kind *kind = kind_find(record->kind);
	char found[VALUE_BYTES] = "", now[VALUE_BYTES], note[NOTE_BYTES] = "";
	struct item item = { .kind = record->kind, .place = record->place, .status = "not applicable", .wanted = record->value,
			     .found = found, .why = "as it was before", .note = note };
	enum kind_read state = kind ? kind->read(record->place, found, note) : KIND_UNREADABLE;

	if (state != KIND_READ)
		found[0] = '\0';
	if (!kind || !kind->write) {
		item.status = "wrong";
		snprintf(note, sizeof(note), "this version can set no such kind");
	} else if (state == KIND_READ && strcmp(found, record->value) == 0) {
		item.status = "ok";
		run->restart |= kind->of_adapter; /* the driver may have started with another one */
	} else if (state != KIND_MISSING) {
		bool back = kind->write(record->place, record->value, note) && kind->read(record->place, now, note) == KIND_READ &&
			    strcmp(now, record->value) == 0;

		item.status = back ? "ok" : "wrong";
		item.changed = back;
		run->restart |= back && kind->of_adapter;
		if (!back && !note[0])
			snprintf(note, sizeof(note), "it did not stay");
	}
	report(run, &item);
	return strcmp(item.status, "wrong") != 0;
}

/* Put all back, the newest first. The file is kept until the adapters run with their old settings. */
static void restore(struct run *run)
{
	static struct undo_record records[UNDO_MAX], left[UNDO_MAX]; /* too large for a stack */
	int count = undo_load(run->undo, records, UNDO_MAX), kept = 0;
	bool started = true;

	if (count < 0) {
		fprintf(stderr, "bw-provision: %s: %s; it stays, and nothing is put back\n", run->undo,
			count == -EILSEQ ? "it is no undo file, or too long" : "it cannot be read");
		run->wrong++;
		return;
	}
	for (int i = count - 1; i >= 0; i--) {
		if (!put_back(run, &records[i]))
			left[kept++] = records[i];
	}
	for (int i = 0; i < count && run->restart; i++) {
		if (strcmp(records[i].kind, "adapter") == 0)
			started = restart_adapter(run, records[i].place) && started;
	}
	if (!started)
		return;
	for (int i = 0; i < kept / 2; i++) { /* oldest first, as they were */
		struct undo_record swap = left[i];

		left[i] = left[kept - 1 - i];
		left[kept - 1 - i] = swap;
	}
	if (!undo_keep(run->undo, left, kept)) {
		fprintf(stderr, "bw-provision: %s cannot be written\n", run->undo);
		run->wrong++;
	}
}

static int die(int code, const char *what, const char *which)
{
	fprintf(stderr, "bw-provision: %s%s\n", what, which);
	return code;
}

static void name_undo(struct run *run, const char *name)
{
	snprintf(run->undo, sizeof(run->undo), "%s\\%s", run->folder, name);
}

/* Make the folder of the state, and hold its lock until the process ends. @return 0, or an exit code */
static int lock_state(struct run *run)
{
	char lock[PATH_BYTES];

	if (!process_state_folder(run->folder, sizeof(run->folder)))
		return die(EXIT_BAD_INPUT, "no folder for the state", "");
	name_undo(run, run->undo_name);
	snprintf(lock, sizeof(lock), "%s\\lock", run->folder);
	switch (process_lock_take(lock)) {
	case LOCK_HELD:
		return 0;
	case LOCK_BUSY:
		return die(EXIT_BUSY, "another provisioning holds ", lock);
	case LOCK_FAILED:
		break;
	}
	return die(EXIT_BAD_INPUT, "cannot write ", lock);
}

/* Find the adapter of the test network. @return 0, or an exit code */
static int find_interface(struct run *run, const char *name)
{
	static struct adapter adapters[ADAPTERS_MAX]; /* used as long as the process runs */
	int count = adapters_list(adapters, ADAPTERS_MAX);

	if (!name)
		return 0;
	for (int i = 0; i < count; i++) {
		if (strcmp(adapters[i].name, name) == 0 || text_same(adapters[i].guid, name)) {
			run->machine.test = &adapters[i];
			return 0;
		}
	}
	return die(EXIT_BAD_INPUT, "there is no interface ", name);
}

static int run_verb(struct run *run, const char *verb, const char *settings)
{
	char error[ERROR_BYTES] = "";
	bool changes = strcmp(verb, "apply") == 0 || strcmp(verb, "restore") == 0;
	int code = 0;

	if (!changes && strcmp(verb, "check") != 0 && strcmp(verb, "facts") != 0)
		return die(EXIT_BAD_INPUT, "allowed are check, apply, restore, facts; unknown verb ", verb);
	if (changes && !process_is_administrator())
		return die(EXIT_NO_RIGHT, "an administrator is needed", "");
	if (changes)
		code = lock_state(run);
	if (code)
		return code;
	if (strcmp(verb, "facts") == 0)
		return facts_print(&run->json, &run->machine, settings, error) ? EXIT_AS_WANTED : die(EXIT_BAD_INPUT, error, "");
	run->apply = changes;
	if (strcmp(verb, "restore") == 0) {
		if (strcmp(run->undo_name, MACHINE_UNDO) == 0) { /* the newest first */
			name_undo(run, STACK_UNDO);
			restore(run);
			name_undo(run, MACHINE_UNDO);
		}
		restore(run);
	} else if (!settings_each(settings, visit, run, error))
		return die(EXIT_BAD_INPUT, error, "");
	if (run->apply && strcmp(verb, "apply") == 0 && run->restart)
		restart_adapter(run, run->machine.test->name);
	summarise(run, verb);
	return run->wrong ? EXIT_NOT_AS_WANTED : EXIT_AS_WANTED;
}

int main(void)
{
	static char arguments[ARGUMENTS_MAX][ARGUMENT_BYTES];
	static struct run run = { .undo_name = MACHINE_UNDO };
	const char *interface_name = NULL, *settings = NULL;
	char beside[PATH_BYTES];
	int count = process_arguments(arguments), at = 1, code;

	process_print_binary();
	json_init(&run.json, stdout);
	for (; at + 1 < count && strncmp(arguments[at], "--", 2) == 0; at += 2) {
		if (strcmp(arguments[at], "--interface") == 0)
			interface_name = arguments[at + 1];
		else if (strcmp(arguments[at], "--settings") == 0)
			settings = arguments[at + 1];
		else if (strcmp(arguments[at], "--undo") == 0)
			run.undo_name = arguments[at + 1];
		else
			return die(EXIT_BAD_INPUT, "allowed are --interface, --settings and --undo; unknown option ", arguments[at]);
	}
	if (count < 0 || at + 1 != count)
		return die(EXIT_BAD_INPUT, "one verb is needed: check, apply, restore or facts", "");
	if (strcmp(run.undo_name, MACHINE_UNDO) != 0 && strcmp(run.undo_name, STACK_UNDO) != 0)
		return die(EXIT_BAD_INPUT, "--undo must be undo or stack.undo, found ", run.undo_name);
	if (!settings) {
		if (!process_file_beside("settings.conf", beside))
			return die(EXIT_BAD_INPUT, "settings.conf cannot be named: the path of this program is too long", "");
		settings = beside;
	}
	code = find_interface(&run, interface_name);
	return code ? code : run_verb(&run, arguments[at], settings);
}
