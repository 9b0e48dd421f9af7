/* SPDX-License-Identifier: Apache-2.0 */
#include "facts.h"

#include <stdio.h>

#include "port_facts.h"
#include "settings.h"

#define WINDOWS_KEY "SOFTWARE\\Microsoft\\Windows NT\\CurrentVersion"
#define CPU_KEY "HARDWARE\\DESCRIPTION\\System\\CentralProcessor\\0"
#define BIOS_KEY "HARDWARE\\DESCRIPTION\\System\\BIOS"

struct context {
	struct json *json;
	const struct machine *machine;
};

static void fact(struct json *json, const char *name, const char *key, const char *value)
{
	char text[NAME_BYTES];

	registry_text(key, value, text, sizeof(text));
	json_string(json, name, text);
}

static void kernel_facts(struct json *json)
{
	char product[NAME_BYTES], display[64], release[160], version[NAME_BYTES + 80];
	unsigned long major, minor, build;
	uint32_t revision = 0;

	system_version(&major, &minor, &build);
	registry_text(WINDOWS_KEY, "ProductName", product, sizeof(product));
	registry_text(WINDOWS_KEY, "DisplayVersion", display, sizeof(display));
	registry_number(WINDOWS_KEY, "UBR", &revision);
	snprintf(release, sizeof(release), "%lu.%lu.%lu.%lu", major, minor, build, (unsigned long)revision);
	snprintf(version, sizeof(version), "%s%s%s", product, display[0] ? " " : "", display);
	json_object_open(json, "kernel");
	json_string(json, "release", release);
	json_string(json, "version", version);
	json_string(json, "machine", "x86_64");
	json_object_close(json);
}

static void cpu_facts(struct json *json)
{
	json_object_open(json, "cpu");
	fact(json, "model", CPU_KEY, "ProcessorNameString");
	json_int(json, "count", fact_processors());
	json_object_close(json);
}

static void clock_facts(struct json *json)
{
	char value[VALUE_BYTES], note[NOTE_BYTES];

	json_object_open(json, "clock");
	json_int(json, "performance_counter_hz", fact_performance_counter_hz());
	if (kind_find("timer")->read("finest_100ns", value, note) == KIND_READ)
		json_string(json, "finest_timer_100ns", value);
	else
		json_null(json, "finest_timer_100ns");
	json_null(json, "tai_utc_s"); /* Windows keeps UTC alone */
	json_object_close(json);
}

static void hypervisor_facts(struct json *json)
{
	json_object_open(json, "hypervisor");
	json_bool(json, "present", fact_hypervisor());
	fact(json, "vendor", BIOS_KEY, "SystemManufacturer");
	fact(json, "product", BIOS_KEY, "SystemProductName");
	json_object_close(json);
}

static void nic_facts(struct json *json)
{
	static struct adapter adapters[ADAPTERS_MAX]; /* too large for a stack */
	int count = adapters_list(adapters, ADAPTERS_MAX);

	json_array_open(json, "nics");
	for (int i = 0; i < count; i++) {
		const struct adapter *adapter = &adapters[i];

		json_object_open(json, NULL);
		json_string(json, "name", adapter->name);
		json_string(json, "description", adapter->description);
		json_string(json, "mac", adapter->mac);
		json_int(json, "mtu", (int64_t)adapter->mtu);
		if (adapter->speed_bit_per_s)
			json_uint(json, "speed_mbit_per_s", adapter->speed_bit_per_s / 1000000);
		else
			json_null(json, "speed_mbit_per_s");
		json_object_open(json, "driver");
		if (adapter->class_key[0]) {
			fact(json, "name", adapter->class_key, "DriverDesc");
			fact(json, "provider", adapter->class_key, "ProviderName");
			fact(json, "version", adapter->class_key, "DriverVersion");
			fact(json, "date", adapter->class_key, "DriverDate");
		}
		json_object_close(json);
		json_object_close(json);
	}
	json_array_close(json);
}

static void version_facts(struct json *json)
{
	static const char *const openssh[] = { "%SystemRoot%\\System32\\OpenSSH\\sshd.exe", "%ProgramFiles%\\OpenSSH\\sshd.exe" };
	char version[64] = "";

	for (size_t i = 0; i < sizeof(openssh) / sizeof(openssh[0]) && !version[0]; i++)
		fact_file_version(openssh[i], version);
	json_object_open(json, "versions");
	json_string(json, "openssh", version);
	if (wine_version()[0])
		json_string(json, "wine", wine_version());
	json_object_close(json);
}

static void setting_fact(void *argument, const struct setting *setting)
{
	const struct context *context = argument;
	char place[PLACE_BYTES], value[VALUE_BYTES], note[NOTE_BYTES] = "", key[PLACE_BYTES + 40];

	if (!setting->kind->place(context->machine, setting->name, place, note) || setting->kind->read(place, value, note) != KIND_READ)
		return;
	snprintf(key, sizeof(key), "%s %s", setting->kind->name, place);
	json_string(context->json, key, value);
}

bool facts_print(struct json *json, const struct machine *machine, const char *settings, char error[512])
{
	struct context context = { .json = json, .machine = machine };
	char hostname[NAME_BYTES];
	bool done;

	fact_host_name(hostname, sizeof(hostname));
	json_object_open(json, NULL);
	json_string(json, "type", "facts");
	json_string(json, "hostname", hostname);
	kernel_facts(json);
	cpu_facts(json);
	json_uint(json, "memory_bytes", fact_memory_bytes());
	clock_facts(json);
	hypervisor_facts(json);
	nic_facts(json);
	json_object_open(json, "settings");
	done = settings_each(settings, setting_fact, &context, error);
	json_object_close(json);
	version_facts(json);
	json_object_close(json);
	return !json_line_end(json) && done;
}
