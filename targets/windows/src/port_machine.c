/* SPDX-License-Identifier: Apache-2.0 */
#include "port_machine.h"

#include <winsock2.h>
#include <windows.h>

#include <ws2tcpip.h>
#include <iphlpapi.h>
#include <powrprof.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"
#include "port_wide.h"

enum { LINE_CHARACTERS = 2048, NUMBER_BYTES = 40 };

#define CLASS_OF_NETWORK "SYSTEM\\CurrentControlSet\\Control\\Class\\{4D36E972-E325-11CE-BFC1-08002BE10318}"
#define UNKNOWN_SPEED (~0ULL)

static enum registry_read what_was_read(LONG error)
{
	if (!error)
		return REGISTRY_READ;
	return error == ERROR_FILE_NOT_FOUND ? REGISTRY_ABSENT : REGISTRY_UNREADABLE;
}

/* Names of a key and a value as the registry takes them. */
struct registry_name {
	wchar_t key[KEY_BYTES], value[NAME_BYTES];
};

static bool registry_name(struct registry_name *name, const char *key, const char *value)
{
	return wide_from(key, name->key, KEY_BYTES) && wide_from(value, name->value, NAME_BYTES);
}

enum registry_read registry_key(const char *key)
{
	wchar_t wide[KEY_BYTES];
	HKEY handle;
	LONG error;

	if (!wide_from(key, wide, KEY_BYTES))
		return REGISTRY_UNREADABLE;
	error = RegOpenKeyExW(HKEY_LOCAL_MACHINE, wide, 0, KEY_READ, &handle);
	if (!error)
		RegCloseKey(handle);
	return what_was_read(error);
}

enum registry_read registry_number(const char *key, const char *value, uint32_t *number)
{
	struct registry_name name;
	uint32_t found;
	DWORD size = sizeof(found);
	LONG error;

	if (!registry_name(&name, key, value))
		return REGISTRY_UNREADABLE;
	error = RegGetValueW(HKEY_LOCAL_MACHINE, name.key, name.value, RRF_RT_REG_DWORD, NULL, &found, &size);
	if (!error)
		*number = found;
	return what_was_read(error);
}

enum registry_read registry_text(const char *key, const char *value, char *text, size_t size)
{
	struct registry_name name;
	wchar_t wide[NAME_BYTES];
	DWORD bytes = sizeof(wide);
	LONG error;

	text[0] = '\0';
	if (!registry_name(&name, key, value))
		return REGISTRY_UNREADABLE;
	error = RegGetValueW(HKEY_LOCAL_MACHINE, name.key, name.value, RRF_RT_REG_SZ, NULL, wide, &bytes);
	if (!error && !wide_to(wide, text, (int)size))
		return REGISTRY_UNREADABLE;
	return what_was_read(error);
}

static unsigned long registry_change(const char *key, const char *value, DWORD type, const void *data, DWORD size)
{
	struct registry_name name;
	HKEY handle;
	LONG error;

	if (!registry_name(&name, key, value))
		return ERROR_INVALID_NAME;
	error = RegOpenKeyExW(HKEY_LOCAL_MACHINE, name.key, 0, KEY_SET_VALUE, &handle);
	if (error)
		return (unsigned long)error;
	error = data ? RegSetValueExW(handle, name.value, 0, type, data, size) : RegDeleteValueW(handle, name.value);
	if (!error)
		error = RegFlushKey(handle);
	RegCloseKey(handle);
	return (unsigned long)error;
}

unsigned long registry_put_number(const char *key, const char *value, uint32_t number)
{
	return registry_change(key, value, REG_DWORD, &number, sizeof(number));
}

unsigned long registry_put_text(const char *key, const char *value, const char *text)
{
	wchar_t wide[NAME_BYTES];

	if (!wide_from(text, wide, NAME_BYTES))
		return ERROR_INVALID_DATA;
	return registry_change(key, value, REG_SZ, wide, (DWORD)((wcslen(wide) + 1) * sizeof(wide[0])));
}

unsigned long registry_delete(const char *key, const char *value)
{
	return registry_change(key, value, REG_NONE, NULL, 0);
}

bool environment_expand(const char *text, char *expanded, size_t size)
{
	wchar_t wide[NAME_BYTES], wide_expanded[NAME_BYTES];
	DWORD length;

	if (!wide_from(text, wide, NAME_BYTES))
		return false;
	length = ExpandEnvironmentStringsW(wide, wide_expanded, NAME_BYTES);
	return length != 0 && length <= NAME_BYTES && wide_to(wide_expanded, expanded, (int)size);
}

unsigned long power_plan_read(struct guid *plan)
{
	GUID *found = NULL;
	DWORD error = PowerGetActiveScheme(NULL, &found);

	if (error || !found)
		return error ? error : ERROR_NOT_FOUND;
	*plan = (struct guid){ .data1 = found->Data1, .data2 = found->Data2, .data3 = found->Data3 };
	memcpy(plan->data4, found->Data4, sizeof(plan->data4));
	LocalFree(found);
	return 0;
}

unsigned long power_plan_write(const struct guid *plan)
{
	GUID wanted = { .Data1 = plan->data1, .Data2 = plan->data2, .Data3 = plan->data3 };

	memcpy(wanted.Data4, plan->data4, sizeof(plan->data4));
	return PowerSetActiveScheme(NULL, &wanted);
}

void machine_pause_ms(unsigned long duration_ms)
{
	Sleep(duration_ms);
}

/* The key of the driver's settings: the one of all network classes that names this adapter. */
static void find_class_key(struct adapter *adapter)
{
	for (int i = 0; i < 1000; i++) {
		char key[KEY_BYTES], guid[64];

		snprintf(key, sizeof(key), "%s\\%04d", CLASS_OF_NETWORK, i);
		if (registry_text(key, "NetCfgInstanceId", guid, sizeof(guid)) == REGISTRY_READ && text_same(guid, adapter->guid)) {
			snprintf(adapter->class_key, sizeof(adapter->class_key), "%s", key);
			return;
		}
	}
}

static void read_adapter(const IP_ADAPTER_ADDRESSES *found, struct adapter *adapter)
{
	memset(adapter, 0, sizeof(*adapter));
	wide_to(found->FriendlyName, adapter->name, sizeof(adapter->name));
	wide_to(found->Description, adapter->description, sizeof(adapter->description));
	snprintf(adapter->guid, sizeof(adapter->guid), "%s", found->AdapterName);
	for (DWORD i = 0; i < found->PhysicalAddressLength && i < 6; i++)
		snprintf(adapter->mac + strlen(adapter->mac), sizeof(adapter->mac) - strlen(adapter->mac), "%s%02x",
			 i ? ":" : "", found->PhysicalAddress[i]);
	adapter->mtu = found->Mtu;
	adapter->speed_bit_per_s = found->ReceiveLinkSpeed == UNKNOWN_SPEED ? 0 : found->ReceiveLinkSpeed;
	adapter->up = found->OperStatus == IfOperStatusUp;
	find_class_key(adapter);
}

static int by_name(const void *one, const void *other)
{
	return strcmp(((const struct adapter *)one)->name, ((const struct adapter *)other)->name);
}

int adapters_list(struct adapter *adapters, int capacity)
{
	ULONG size = 64 * 1024, flags = GAA_FLAG_SKIP_ANYCAST | GAA_FLAG_SKIP_MULTICAST | GAA_FLAG_SKIP_DNS_SERVER;
	IP_ADAPTER_ADDRESSES *list = malloc(size);
	int count = 0;

	if (list && !GetAdaptersAddresses(AF_UNSPEC, flags, NULL, list, &size)) {
		for (IP_ADAPTER_ADDRESSES *found = list; found && count < capacity; found = found->Next) {
			if (found->IfType == IF_TYPE_ETHERNET_CSMACD && found->PhysicalAddressLength)
				read_adapter(found, &adapters[count++]);
		}
	}
	free(list);
	qsort(adapters, (size_t)count, sizeof(*adapters), by_name);
	return count;
}

/* @param output  for what it prints, to be inherited; NULL: no handle is, as it is for people. @return as program_run() */
static int run(const char *command_line, unsigned long timeout_ms, HANDLE output)
{
	wchar_t line[LINE_CHARACTERS];
	STARTUPINFOW startup = { .cb = sizeof(startup), .dwFlags = output ? STARTF_USESTDHANDLES : 0, .hStdOutput = output };
	PROCESS_INFORMATION process;
	DWORD code = (DWORD)-1;

	if (!wide_from(command_line, line, LINE_CHARACTERS) ||
	    !CreateProcessW(NULL, line, NULL, NULL, output != NULL, CREATE_NO_WINDOW, NULL, NULL, &startup, &process))
		return -1;
	if (WaitForSingleObject(process.hProcess, timeout_ms) == WAIT_OBJECT_0)
		GetExitCodeProcess(process.hProcess, &code);
	else
		TerminateProcess(process.hProcess, 1);
	CloseHandle(process.hThread);
	CloseHandle(process.hProcess);
	return (int)code;
}

int program_run(const char *command_line, unsigned long timeout_ms)
{
	return run(command_line, timeout_ms, NULL);
}

bool program_number(const char *command_line, unsigned long timeout_ms, unsigned long *number)
{
	SECURITY_ATTRIBUTES inherited = { .nLength = sizeof(inherited), .bInheritHandle = TRUE };
	char text[NUMBER_BYTES] = "", *end;
	HANDLE in, out;
	DWORD size = 0;
	int code;

	if (!CreatePipe(&in, &out, &inherited, 0))
		return false;
	code = run(command_line, timeout_ms, out); /* a number has room in the pipe */
	CloseHandle(out);
	if (code == 0)
		ReadFile(in, text, sizeof(text) - 1, &size, NULL);
	CloseHandle(in);
	text[size] = '\0';
	*number = strtoul(text, &end, 10);
	return end != text && *text >= '0' && *text <= '9' && (!*end || *end == '\r' || *end == '\n');
}

bool service_running(const char *name, bool *running)
{
	wchar_t wide[NAME_BYTES];
	SC_HANDLE manager = wide_from(name, wide, NAME_BYTES) ? OpenSCManagerW(NULL, NULL, SC_MANAGER_CONNECT) : NULL;
	SC_HANDLE service = manager ? OpenServiceW(manager, wide, SERVICE_QUERY_STATUS) : NULL;
	SERVICE_STATUS status = { 0 };
	bool found = service && QueryServiceStatus(service, &status);

	*running = found && status.dwCurrentState != SERVICE_STOPPED;
	if (service)
		CloseServiceHandle(service);
	if (manager)
		CloseServiceHandle(manager);
	return found;
}

void system_version(unsigned long *major, unsigned long *minor, unsigned long *build)
{
	typedef LONG NTAPI get_version(RTL_OSVERSIONINFOW *version);
	FARPROC address = GetProcAddress(GetModuleHandleA("ntdll.dll"), "RtlGetVersion");
	RTL_OSVERSIONINFOW version = { .dwOSVersionInfoSize = sizeof(version) };
	get_version *read_version = NULL;

	if (address) {
		memcpy(&read_version, &address, sizeof(read_version));
		read_version(&version);
	}
	*major = version.dwMajorVersion;
	*minor = version.dwMinorVersion;
	*build = version.dwBuildNumber;
}

const char *wine_version(void)
{
	typedef const char *CDECL get_version(void);
	FARPROC address = GetProcAddress(GetModuleHandleA("ntdll.dll"), "wine_get_version");
	get_version *version = NULL;

	if (!address)
		return "";
	memcpy(&version, &address, sizeof(version));
	return version();
}
