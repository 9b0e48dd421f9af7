/* SPDX-License-Identifier: Apache-2.0 */
#include "kinds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "port_facts.h"

enum { PROGRAM_MS = 20000, SERVICE_TRIES = 100, SERVICE_TRY_MS = 100 };

#define HKLM "HKLM\\"
#define TCP_INTERFACES "SYSTEM\\CurrentControlSet\\Services\\Tcpip\\Parameters\\Interfaces\\"
#define FIREWALL_SERVICE "MpsSvc"
#define GUID_FORMAT "%08lx-%04x-%04x-%02x%02x-%02x%02x%02x%02x%02x%02x"

static void note_error(char note[NOTE_BYTES], const char *what, unsigned long error)
{
	snprintf(note, NOTE_BYTES, "%s: error %lu", what, error);
}

static bool same_place(const struct machine *machine, const char *setting, char place[PLACE_BYTES], char note[NOTE_BYTES])
{
	(void)machine;
	(void)note;
	snprintf(place, PLACE_BYTES, "%s", setting);
	return true;
}

/* ---- registry PATH: a number of the registry. Its key must be there: one that a system lacks is one that it does not heed. -------- */

static bool registry_split(const char *place, char key[KEY_BYTES], const char **value)
{
	const char *last = strrchr(place, '\\');
	size_t root = strlen(HKLM);

	if (strncmp(place, HKLM, root) != 0 || !last || last < place + root || (size_t)(last - place) - root >= KEY_BYTES)
		return false;
	memcpy(key, place + root, (size_t)(last - place) - root);
	key[(size_t)(last - place) - root] = '\0';
	*value = last + 1;
	return true;
}

static enum kind_read registry_open(const char *place, char key[KEY_BYTES], const char **value, char note[NOTE_BYTES])
{
	if (!registry_split(place, key, value)) {
		snprintf(note, NOTE_BYTES, "must be HKLM\\KEY\\VALUE");
		return KIND_UNREADABLE;
	}
	switch (registry_key(key)) {
	case REGISTRY_READ:
		return KIND_READ;
	case REGISTRY_ABSENT:
		snprintf(note, NOTE_BYTES, "this system has no key %.200s", key);
		return KIND_MISSING;
	case REGISTRY_UNREADABLE:
		break;
	}
	snprintf(note, NOTE_BYTES, "the registry does not let key %.200s be read", key);
	return KIND_UNREADABLE;
}

static enum kind_read number_read(const char *place, char value[VALUE_BYTES], char note[NOTE_BYTES])
{
	char key[KEY_BYTES];
	const char *name;
	uint32_t number;
	enum kind_read found = registry_open(place, key, &name, note);

	if (found != KIND_READ)
		return found;
	switch (registry_number(key, name, &number)) {
	case REGISTRY_READ:
		snprintf(value, VALUE_BYTES, "%lu", (unsigned long)number);
		return KIND_READ;
	case REGISTRY_ABSENT:
		snprintf(value, VALUE_BYTES, VALUE_ABSENT);
		return KIND_READ;
	case REGISTRY_UNREADABLE:
		break;
	}
	snprintf(note, NOTE_BYTES, "what it holds is no number of 32 bits, or may not be read");
	return KIND_UNREADABLE;
}

/* What a change of the registry has ended with, as a note. */
static bool registry_done(unsigned long error, char note[NOTE_BYTES])
{
	if (error)
		note_error(note, "the registry refuses", error);
	return !error;
}

static bool number_write(const char *place, const char *value, char note[NOTE_BYTES])
{
	bool absent = strcmp(value, VALUE_ABSENT) == 0;
	char key[KEY_BYTES];
	const char *name;

	return registry_open(place, key, &name, note) == KIND_READ &&
	       registry_done(absent ? registry_delete(key, name) : registry_put_number(key, name, (uint32_t)strtoul(value, NULL, 10)),
			     note);
}

/* ---- text PATH: a text of the registry, likewise -------------------------------------------------------------------------------- */

/* A text that the undo file has no form for cannot be put back, and is therefore not changed. */
static bool text_can_be_kept(const char *text)
{
	for (const char *at = text; *at; at++) {
		if ((unsigned char)*at < ' ')
			return false;
	}
	return strcmp(text, VALUE_ABSENT) != 0;
}

static enum kind_read text_read(const char *place, char value[VALUE_BYTES], char note[NOTE_BYTES])
{
	char key[KEY_BYTES];
	const char *name;
	enum kind_read found = registry_open(place, key, &name, note);

	if (found != KIND_READ)
		return found;
	switch (registry_text(key, name, value, VALUE_BYTES)) {
	case REGISTRY_READ:
		if (text_can_be_kept(value))
			return KIND_READ;
		break;
	case REGISTRY_ABSENT:
		snprintf(value, VALUE_BYTES, VALUE_ABSENT);
		return KIND_READ;
	case REGISTRY_UNREADABLE:
		break;
	}
	snprintf(note, NOTE_BYTES, "what it holds is no plain text of at most %d bytes, or may not be read", VALUE_BYTES - 1);
	return KIND_UNREADABLE;
}

static bool text_write(const char *place, const char *value, char note[NOTE_BYTES])
{
	bool absent = strcmp(value, VALUE_ABSENT) == 0;
	char key[KEY_BYTES];
	const char *name;

	return registry_open(place, key, &name, note) == KIND_READ &&
	       registry_done(absent ? registry_delete(key, name) : registry_put_text(key, name, value), note);
}

/* ---- tcp NAME: a number of the test adapter's TCP settings ------------------------------------------------------------------ */

static bool need_adapter(const struct machine *machine, char note[NOTE_BYTES])
{
	if (!machine->test)
		snprintf(note, NOTE_BYTES, "no test interface was named");
	return machine->test != NULL;
}

static bool tcp_place(const struct machine *machine, const char *setting, char place[PLACE_BYTES], char note[NOTE_BYTES])
{
	if (!need_adapter(machine, note))
		return false;
	snprintf(place, PLACE_BYTES, HKLM TCP_INTERFACES "%s\\%s", machine->test->guid, setting);
	return true;
}

/* ---- tcp_template TEMPLATE.PROPERTY: a number of the system's TCP for connections of a kind ------------------------------------- */

static const struct {
	const char *property, *word; /* as Get-NetTCPSetting has it, and netsh */
} template_words[] = { { "MinRtoMs", "minrto" }, { "DelayedAckTimeoutMs", "delayedacktimeout" },
		       { "DelayedAckFrequency", "delayedackfrequency" } };

static const char *template_split(const char *place, char template[NAME_BYTES], char note[NOTE_BYTES])
{
	const char *dot = strchr(place, '.');

	for (size_t i = 0; dot && i < sizeof(template_words) / sizeof(template_words[0]); i++) {
		if (strcmp(dot + 1, template_words[i].property) != 0)
			continue;
		snprintf(template, NAME_BYTES, "%.*s", (int)(dot - place), place);
		if (strspn(template, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") == strlen(template))
			return template_words[i].word;
	}
	snprintf(note, NOTE_BYTES, "must be TEMPLATE.MinRtoMs, .DelayedAckTimeoutMs or .DelayedAckFrequency");
	return NULL;
}

/* What netsh prints is in the language of the system; PowerShell's is a number. */
static enum kind_read template_read(const char *place, char value[VALUE_BYTES], char note[NOTE_BYTES])
{
	char template[NAME_BYTES], line[512];
	unsigned long number;

	if (!template_split(place, template, note))
		return KIND_UNREADABLE;
	snprintf(line, sizeof(line), "powershell.exe -NoProfile -NonInteractive -Command \"(Get-NetTCPSetting -SettingName %.60s).%s\"",
		 template, strchr(place, '.') + 1);
	if (!program_number(line, PROGRAM_MS, &number)) {
		snprintf(note, NOTE_BYTES, "not available: this system does not say its %.100s", place);
		return KIND_MISSING;
	}
	snprintf(value, VALUE_BYTES, "%lu", number);
	return KIND_READ;
}

static bool template_write(const char *place, const char *value, char note[NOTE_BYTES])
{
	char template[NAME_BYTES], line[512];
	const char *word = template_split(place, template, note);

	if (!word)
		return false;
	snprintf(line, sizeof(line), "netsh.exe int tcp set supplemental template=%.60s %s=%.20s", template, word, value);
	if (program_run(line, PROGRAM_MS) == 0)
		return true;
	snprintf(note, NOTE_BYTES, "netsh refuses %s=%.20s", word, value);
	return false;
}

/* ---- nic KEYWORD: a standardised keyword of the test adapter's driver, a text of digits ------------------------------------------ */

static bool nic_place(const struct machine *machine, const char *setting, char place[PLACE_BYTES], char note[NOTE_BYTES])
{
	if (!need_adapter(machine, note))
		return false;
	if (!machine->test->class_key[0]) {
		snprintf(note, NOTE_BYTES, "not available: the driver of %.100s has no settings", machine->test->name);
		return false;
	}
	snprintf(place, PLACE_BYTES, HKLM "%s\\%s", machine->test->class_key, setting);
	return true;
}

/* A driver that has a keyword describes it below Ndi\Params, whether it was ever set or not. */
static enum kind_read nic_read(const char *place, char value[VALUE_BYTES], char note[NOTE_BYTES])
{
	char key[KEY_BYTES], parameters[KEY_BYTES + NAME_BYTES];
	const char *name;
	enum kind_read found = text_read(place, value, note);

	if (found != KIND_READ || strcmp(value, VALUE_ABSENT) != 0 || !registry_split(place, key, &name))
		return found;
	snprintf(parameters, sizeof(parameters), "%s\\Ndi\\Params\\%.200s", key, name);
	if (registry_key(parameters) != REGISTRY_ABSENT)
		return KIND_READ;
	snprintf(note, NOTE_BYTES, "the driver has no %.100s", name);
	return KIND_MISSING;
}

/* ---- adapter NAME: whether it is on. Only in the undo file: a new start of it must not end half-way. --------------------------- */

static enum kind_read adapter_read(const char *place, char value[VALUE_BYTES], char note[NOTE_BYTES])
{
	static struct adapter adapters[ADAPTERS_MAX]; /* too large for a stack */
	int count = adapters_list(adapters, ADAPTERS_MAX);

	for (int i = 0; i < count; i++) {
		if (strcmp(adapters[i].name, place) == 0) {
			snprintf(value, VALUE_BYTES, adapters[i].up ? "enabled" : "disabled");
			return KIND_READ;
		}
	}
	/* An adapter that is switched off is in no list. */
	(void)note;
	snprintf(value, VALUE_BYTES, "disabled");
	return KIND_READ;
}

static bool adapter_write(const char *place, const char *value, char note[NOTE_BYTES])
{
	char line[512], now[VALUE_BYTES] = "";

	snprintf(line, sizeof(line), "netsh.exe interface set interface name=\"%s\" admin=%s", place, value);
	if (program_run(line, PROGRAM_MS) != 0) {
		snprintf(note, NOTE_BYTES, "netsh refuses %.20s", value);
		return false;
	}
	for (int i = 0; i < SERVICE_TRIES && strcmp(now, value) != 0; i++) {
		machine_pause_ms(SERVICE_TRY_MS);
		adapter_read(place, now, note);
	}
	return true;
}

/* ---- service NAME: running or stopped ------------------------------------------------------------------------------------------- */

static enum kind_read service_read(const char *place, char value[VALUE_BYTES], char note[NOTE_BYTES])
{
	bool running;

	if (!service_running(place, &running)) {
		snprintf(note, NOTE_BYTES, "not available: there is no service %.100s", place);
		return KIND_MISSING;
	}
	snprintf(value, VALUE_BYTES, running ? "running" : "stopped");
	return KIND_READ;
}

static bool service_write(const char *place, const char *value, char note[NOTE_BYTES])
{
	char line[256], now[VALUE_BYTES] = "";
	bool start = strcmp(value, "running") == 0;

	snprintf(line, sizeof(line), "sc.exe %s %.100s", start ? "start" : "stop", place);
	if (program_run(line, PROGRAM_MS) != 0) {
		snprintf(note, NOTE_BYTES, "the service manager refuses to %s it", start ? "start" : "stop");
		return false;
	}
	for (int i = 0; i < SERVICE_TRIES && strcmp(now, value) != 0; i++) {
		machine_pause_ms(SERVICE_TRY_MS);
		if (service_read(place, now, note) != KIND_READ)
			return false;
	}
	return true;
}

/* ---- firewall RULE=PROGRAM: a rule that lets a program be reached ------------------------------------------------------------- */

static bool firewall_split(const char *place, char rule[NAME_BYTES], char program[NAME_BYTES])
{
	const char *equals = strchr(place, '=');

	if (!equals || equals == place || strchr(place, '"'))
		return false;
	snprintf(rule, NAME_BYTES, "%.*s", (int)(equals - place), place);
	return environment_expand(equals + 1, program, NAME_BYTES);
}

static enum kind_read firewall_read(const char *place, char value[VALUE_BYTES], char note[NOTE_BYTES])
{
	char rule[NAME_BYTES], program[NAME_BYTES], line[512];
	bool running;

	if (!firewall_split(place, rule, program)) {
		snprintf(note, NOTE_BYTES, "must be RULE=PROGRAM without quotes");
		return KIND_UNREADABLE;
	}
	if (!service_running(FIREWALL_SERVICE, &running)) {
		snprintf(note, NOTE_BYTES, "not available: there is no firewall (service " FIREWALL_SERVICE ")");
		return KIND_MISSING;
	}
	/* Exit code 1: no rule matches. What it prints is in the language of the system. */
	snprintf(line, sizeof(line), "netsh.exe advfirewall firewall show rule name=\"%.200s\"", rule);
	switch (program_run(line, PROGRAM_MS)) {
	case 0:
		snprintf(value, VALUE_BYTES, "allowed");
		return KIND_READ;
	case 1:
		snprintf(value, VALUE_BYTES, VALUE_ABSENT);
		return KIND_READ;
	default:
		snprintf(note, NOTE_BYTES, "netsh does not answer whether there is such a rule");
		return KIND_UNREADABLE;
	}
}

static bool firewall_write(const char *place, const char *value, char note[NOTE_BYTES])
{
	char rule[NAME_BYTES], program[NAME_BYTES], line[1024];

	if (!firewall_split(place, rule, program))
		return false;
	if (strcmp(value, VALUE_ABSENT) == 0)
		snprintf(line, sizeof(line), "netsh.exe advfirewall firewall delete rule name=\"%s\"", rule);
	else
		snprintf(line, sizeof(line),
			 "netsh.exe advfirewall firewall add rule name=\"%s\" dir=in action=allow program=\"%s\" profile=any "
			 "enable=yes", rule, program);
	if (program_run(line, PROGRAM_MS) == 0)
		return true;
	snprintf(note, NOTE_BYTES, "netsh refuses the rule");
	return false;
}

/* ---- power scheme: GUID of the active plan ---------------------------------------------------------------------------------------- */

static enum kind_read power_read(const char *place, char value[VALUE_BYTES], char note[NOTE_BYTES])
{
	struct guid plan;
	unsigned long error = power_plan_read(&plan);
	const uint8_t *last = plan.data4;

	(void)place;
	if (error) {
		note_error(note, "not available: no power plan is active", error);
		return KIND_MISSING;
	}
	snprintf(value, VALUE_BYTES, GUID_FORMAT, (unsigned long)plan.data1, plan.data2, plan.data3, last[0], last[1], last[2],
		 last[3], last[4], last[5], last[6], last[7]);
	return KIND_READ;
}

static bool power_write(const char *place, const char *value, char note[NOTE_BYTES])
{
	unsigned int data[11];
	struct guid plan;
	unsigned long error;

	(void)place;
	if (sscanf(value, "%8x-%4x-%4x-%2x%2x-%2x%2x%2x%2x%2x%2x", &data[0], &data[1], &data[2], &data[3], &data[4], &data[5],
		   &data[6], &data[7], &data[8], &data[9], &data[10]) != 11) {
		snprintf(note, NOTE_BYTES, "%.100s is no GUID of a power plan", value);
		return false;
	}
	plan = (struct guid){ .data1 = data[0], .data2 = (uint16_t)data[1], .data3 = (uint16_t)data[2] };
	for (int i = 0; i < 8; i++)
		plan.data4[i] = (uint8_t)data[3 + i];
	error = power_plan_write(&plan);
	if (error)
		note_error(note, "this machine has no such power plan", error);
	return !error;
}

/* ---- system build, timer finest_100ns: what can only be checked --------------------------------------------------------------- */

static enum kind_read system_read(const char *place, char value[VALUE_BYTES], char note[NOTE_BYTES])
{
	unsigned long major, minor, build;

	system_version(&major, &minor, &build);
	snprintf(value, VALUE_BYTES, "%lu", build);
	if (strcmp(place, "build") == 0)
		return KIND_READ;
	snprintf(note, NOTE_BYTES, "the system does not say its %.100s", place);
	return KIND_MISSING;
}

static enum kind_read timer_read(const char *place, char value[VALUE_BYTES], char note[NOTE_BYTES])
{
	unsigned long finest_100ns;

	if (strcmp(place, "finest_100ns") != 0 || !fact_timer_finest_100ns(&finest_100ns)) {
		snprintf(note, NOTE_BYTES, "not available: the system does not say its timer's %.100s", place);
		return KIND_MISSING;
	}
	snprintf(value, VALUE_BYTES, "%lu", finest_100ns);
	return KIND_READ;
}

static const struct kind kinds[] = {
	{ "system", same_place, system_read, NULL, false },
	{ "timer", same_place, timer_read, NULL, false },
	{ "service", same_place, service_read, service_write, false },
	{ "power", same_place, power_read, power_write, false },
	{ "firewall", same_place, firewall_read, firewall_write, false },
	{ "registry", same_place, number_read, number_write, false },
	{ "text", same_place, text_read, text_write, false },
	{ "tcp", tcp_place, number_read, number_write, true },
	{ "tcp_template", same_place, template_read, template_write, false },
	{ "nic", nic_place, nic_read, text_write, true },
	{ "adapter", same_place, adapter_read, adapter_write, false },
};

const struct kind *kind_find(const char *name)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(kinds[i].name, name) == 0)
			return &kinds[i];
	}
	return NULL;
}
