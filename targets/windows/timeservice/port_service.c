/* SPDX-License-Identifier: Apache-2.0 */
#include "port_service.h"

#include <windows.h>
#include <sddl.h>

#include <stdio.h>
#include <string.h>

#include "../src/port_wide.h"
#include "port/port_wait.h"

#define ACCOUNT L"NT AUTHORITY\\LocalService"
#define LOG_KEY L"SYSTEM\\CurrentControlSet\\Services\\EventLog\\Application\\"
#define RESTART_AFTER_MS 5000
#define FORGET_FAILURES_S 86400
#define POLL_MS 100
#define PATIENCE_MS 20000

enum { CONTROL_HOLD = 128, CONTROL_LISTEN = 129, NAME_LENGTH = 256, EVENT_ID = 1 };

/* What the service control manager's callbacks get no argument for. */
static struct {
	wchar_t name[NAME_LENGTH];
	service_body *body;
	service_again *again;
	int argc;
	char **argv;
	SERVICE_STATUS_HANDLE handle;
	SERVICE_STATUS status;
	int code;
} running;

char *port_service_error(unsigned long code, char *text, int size_bytes)
{
	wchar_t wide[512];
	DWORD length = FormatMessageW(FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS, NULL, code, 0, wide,
				      sizeof(wide) / sizeof(wide[0]), NULL);

	while (length && (wide[length - 1] == L'\r' || wide[length - 1] == L'\n' || wide[length - 1] == L' '))
		wide[--length] = L'\0';
	if (!length || !wide_to(wide, text, size_bytes))
		snprintf(text, (size_t)size_bytes, "error %lu", code);
	return text;
}

/* ---- made and removed -------------------------------------------------------------------------------------------- */

/* "C:\…\bw-timed.exe" service ARGUMENTS */
static DWORD command_of(const struct service_facts *facts, wchar_t *command, int capacity)
{
	wchar_t path[MAX_PATH * 4], arguments[SERVICE_TEXT_BYTES];
	DWORD length = GetModuleFileNameW(NULL, path, sizeof(path) / sizeof(path[0]));

	if (!length || length >= sizeof(path) / sizeof(path[0]))
		return ERROR_FILENAME_EXCED_RANGE;
	if (!wide_from(facts->arguments, arguments, SERVICE_TEXT_BYTES))
		return ERROR_INVALID_PARAMETER;
	/* The path is in quotes: blanks in it would let another program be found first. */
	if (_snwprintf(command, (size_t)capacity, L"\"%ls\" service%ls%ls", path, *arguments ? L" " : L"", arguments) >= capacity)
		return ERROR_FILENAME_EXCED_RANGE;
	return 0;
}

/* What CreateService does not take: words, no privileges, an identity of its own, a new start after a failure. */
static DWORD configure(SC_HANDLE service, const struct service_facts *facts)
{
	wchar_t about[1024];
	SERVICE_DESCRIPTIONW description = { about };
	wchar_t privileges[] = L"SeChangeNotifyPrivilege\0"; /* a list, ended twice */
	SERVICE_REQUIRED_PRIVILEGES_INFOW required = { privileges };
	SERVICE_SID_INFO identity = { SERVICE_SID_TYPE_UNRESTRICTED };
	SC_ACTION actions[] = { { SC_ACTION_RESTART, RESTART_AFTER_MS }, { SC_ACTION_RESTART, RESTART_AFTER_MS } };
	SERVICE_FAILURE_ACTIONSW failures = { .dwResetPeriod = FORGET_FAILURES_S, .cActions = 2, .lpsaActions = actions };

	if (!wide_from(facts->about, about, sizeof(about) / sizeof(about[0])))
		return ERROR_INVALID_PARAMETER;
	if (!ChangeServiceConfig2W(service, SERVICE_CONFIG_DESCRIPTION, &description))
		return GetLastError();
	/* Systems that do not know one of these run it with what the account has. */
	ChangeServiceConfig2W(service, SERVICE_CONFIG_REQUIRED_PRIVILEGES_INFO, &required);
	ChangeServiceConfig2W(service, SERVICE_CONFIG_SERVICE_SID_INFO, &identity);
	ChangeServiceConfig2W(service, SERVICE_CONFIG_FAILURE_ACTIONS, &failures);
	return 0;
}

/* Let the event viewer know who writes. */
static void register_log(const wchar_t *name)
{
	wchar_t key[NAME_LENGTH + 64];
	DWORD types = EVENTLOG_ERROR_TYPE | EVENTLOG_WARNING_TYPE | EVENTLOG_INFORMATION_TYPE;

	_snwprintf(key, sizeof(key) / sizeof(key[0]), LOG_KEY L"%ls", name);
	RegSetKeyValueW(HKEY_LOCAL_MACHINE, key, L"TypesSupported", REG_DWORD, &types, sizeof(types));
}

unsigned long port_service_install(const struct service_facts *facts)
{
	wchar_t name[NAME_LENGTH], shown[NAME_LENGTH], command[SERVICE_TEXT_BYTES];
	DWORD err = command_of(facts, command, SERVICE_TEXT_BYTES);
	SC_HANDLE manager, service;

	if (err)
		return err;
	if (!wide_from(facts->name, name, NAME_LENGTH) || !wide_from(facts->shown, shown, NAME_LENGTH))
		return ERROR_INVALID_PARAMETER;
	manager = OpenSCManagerW(NULL, NULL, SC_MANAGER_CREATE_SERVICE);
	if (!manager)
		return GetLastError();
	service = CreateServiceW(manager, name, shown, SERVICE_ALL_ACCESS, SERVICE_WIN32_OWN_PROCESS, SERVICE_AUTO_START,
				 SERVICE_ERROR_NORMAL, command, NULL, NULL, NULL, ACCOUNT, NULL);
	if (!service && GetLastError() == ERROR_SERVICE_EXISTS) {
		service = OpenServiceW(manager, name, SERVICE_ALL_ACCESS);
		if (service && !ChangeServiceConfigW(service, SERVICE_WIN32_OWN_PROCESS, SERVICE_AUTO_START, SERVICE_ERROR_NORMAL, command,
						     NULL, NULL, NULL, ACCOUNT, NULL, shown))
			err = GetLastError();
	}
	if (!service)
		err = GetLastError();
	if (!err)
		err = configure(service, facts);
	if (!err)
		register_log(name);
	if (service)
		CloseServiceHandle(service);
	CloseServiceHandle(manager);
	return err;
}

/* Open a service; *manager is to be closed, too. */
static DWORD open_service(const char *name, DWORD access, SC_HANDLE *manager, SC_HANDLE *service)
{
	wchar_t wide[NAME_LENGTH];

	if (!wide_from(name, wide, NAME_LENGTH))
		return ERROR_INVALID_PARAMETER;
	*manager = OpenSCManagerW(NULL, NULL, SC_MANAGER_CONNECT);
	if (!*manager)
		return GetLastError();
	*service = OpenServiceW(*manager, wide, access);
	if (!*service) {
		DWORD err = GetLastError();

		CloseServiceHandle(*manager);
		return err;
	}
	return 0;
}

static void close_service(SC_HANDLE manager, SC_HANDLE service)
{
	CloseServiceHandle(service);
	CloseServiceHandle(manager);
}

/* Wait for a state. One that ends meanwhile says why. */
static DWORD wait_for(SC_HANDLE service, DWORD state)
{
	for (int waited_ms = 0; waited_ms < PATIENCE_MS; waited_ms += POLL_MS) {
		SERVICE_STATUS status;

		if (!QueryServiceStatus(service, &status))
			return GetLastError();
		if (status.dwCurrentState == state)
			return 0;
		if (status.dwCurrentState == SERVICE_STOPPED)
			return status.dwWin32ExitCode ? status.dwWin32ExitCode : ERROR_SERVICE_NOT_ACTIVE;
		Sleep(POLL_MS);
	}
	return ERROR_SERVICE_REQUEST_TIMEOUT;
}

static DWORD stop(SC_HANDLE service)
{
	SERVICE_STATUS status;
	DWORD err = ControlService(service, SERVICE_CONTROL_STOP, &status) ? 0 : GetLastError();

	return err ? err : wait_for(service, SERVICE_STOPPED);
}

unsigned long port_service_uninstall(const char *name)
{
	SC_HANDLE manager, service;
	DWORD err = open_service(name, SERVICE_STOP | SERVICE_QUERY_STATUS | DELETE, &manager, &service);

	if (err)
		return err;
	stop(service); /* it may have ended */
	err = DeleteService(service) ? 0 : GetLastError();
	close_service(manager, service);
	return err;
}

unsigned long port_service_start(const char *name)
{
	SC_HANDLE manager, service;
	DWORD err = open_service(name, SERVICE_START | SERVICE_QUERY_STATUS, &manager, &service);

	if (err)
		return err;
	if (!StartServiceW(service, 0, NULL))
		err = GetLastError();
	if (!err)
		err = wait_for(service, SERVICE_RUNNING);
	close_service(manager, service);
	return err;
}

unsigned long port_service_stop(const char *name)
{
	SC_HANDLE manager, service;
	DWORD err = open_service(name, SERVICE_STOP | SERVICE_QUERY_STATUS, &manager, &service);

	if (err)
		return err;
	err = stop(service);
	close_service(manager, service);
	return err;
}

/* ---- its folder -------------------------------------------------------------------------------------------------- */

/* Make the folders above. */
static void make_parents(const wchar_t *path)
{
	wchar_t parent[MAX_PATH];

	for (int i = 3; path[i] && i < MAX_PATH; i++) { /* after C:\ */
		if (path[i] != L'\\' && path[i] != L'/')
			continue;
		memcpy(parent, path, (size_t)i * sizeof(parent[0]));
		parent[i] = L'\0';
		CreateDirectoryW(parent, NULL);
	}
}

/* The service's own identity as text, where the system gives services one; else that of the account that it runs as. */
static void identity_of(const char *service, wchar_t *text, int capacity)
{
	wchar_t name[NAME_LENGTH], account[NAME_LENGTH + 16], domain[NAME_LENGTH], *found;
	DWORD domain_length = NAME_LENGTH, sid_bytes;
	union {
		SID sid;
		BYTE bytes[SECURITY_MAX_SID_SIZE];
	} sid;
	SID_NAME_USE use;

	_snwprintf(text, (size_t)capacity, L"LS");
	sid_bytes = sizeof(sid);
	if (!wide_from(service, name, NAME_LENGTH))
		return;
	_snwprintf(account, sizeof(account) / sizeof(account[0]), L"NT SERVICE\\%ls", name);
	if (!LookupAccountNameW(NULL, account, &sid.sid, &sid_bytes, domain, &domain_length, &use) ||
	    !ConvertSidToStringSidW(&sid.sid, &found))
		return;
	_snwprintf(text, (size_t)capacity, L"%ls", found);
	LocalFree(found);
}

unsigned long port_service_folder(const char *path, const char *service)
{
	SECURITY_ATTRIBUTES attributes = { .nLength = sizeof(attributes) };
	wchar_t wide[MAX_PATH], identity[200], access[400];
	DWORD err = 0;

	if (!wide_from(path, wide, MAX_PATH))
		return ERROR_INVALID_PARAMETER;
	make_parents(wide);
	identity_of(service, identity, sizeof(identity) / sizeof(identity[0]));
	/* Nothing is inherited; the system, administrators and the service write, users read. */
	_snwprintf(access, sizeof(access) / sizeof(access[0]),
		   L"D:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;0x1301bf;;;%ls)(A;OICI;FRFX;;;BU)", identity);
	if (!ConvertStringSecurityDescriptorToSecurityDescriptorW(access, SDDL_REVISION_1, &attributes.lpSecurityDescriptor, NULL))
		return GetLastError();
	if (!CreateDirectoryW(wide, &attributes)) {
		err = GetLastError();
		if (err == ERROR_ALREADY_EXISTS)
			err = SetFileSecurityW(wide, DACL_SECURITY_INFORMATION, attributes.lpSecurityDescriptor) ? 0 : GetLastError();
	}
	LocalFree(attributes.lpSecurityDescriptor);
	return err;
}

/* ---- run by the service control manager -------------------------------------------------------------------------- */

static void say_state(DWORD state, DWORD wait_ms)
{
	running.status.dwServiceType = SERVICE_WIN32_OWN_PROCESS;
	running.status.dwCurrentState = state;
	running.status.dwControlsAccepted = state == SERVICE_RUNNING ? SERVICE_ACCEPT_STOP | SERVICE_ACCEPT_SHUTDOWN : 0;
	running.status.dwWaitHint = wait_ms;
	SetServiceStatus(running.handle, &running.status);
}

static void say_in_log(WORD type, const wchar_t *text)
{
	HANDLE log = RegisterEventSourceW(NULL, running.name);

	if (!log)
		return;
	ReportEventW(log, type, 0, EVENT_ID, NULL, 1, 0, &text, NULL);
	DeregisterEventSource(log);
}

static DWORD WINAPI on_control(DWORD control, DWORD type, void *data, void *context)
{
	(void)type;
	(void)data;
	(void)context;
	switch (control) {
	case SERVICE_CONTROL_STOP:
	case SERVICE_CONTROL_SHUTDOWN:
		say_state(SERVICE_STOP_PENDING, PATIENCE_MS);
		waiter_tell(waiter_own_pid(), WAIT_END);
		return NO_ERROR;
	case CONTROL_HOLD:
		return waiter_tell(waiter_own_pid(), WAIT_HOLD) ? ERROR_NOT_READY : NO_ERROR;
	case CONTROL_LISTEN:
		return waiter_tell(waiter_own_pid(), WAIT_LISTEN) ? ERROR_NOT_READY : NO_ERROR;
	case SERVICE_CONTROL_INTERROGATE:
		return NO_ERROR;
	default:
		return ERROR_CALL_NOT_IMPLEMENTED;
	}
}

static void WINAPI service_main(DWORD argc, LPWSTR *argv)
{
	(void)argc;
	(void)argv;
	running.handle = RegisterServiceCtrlHandlerExW(running.name, on_control, NULL);
	if (!running.handle)
		return;
	say_state(SERVICE_RUNNING, 0);
	say_in_log(EVENTLOG_INFORMATION_TYPE, L"started");
	running.code = running.body(running.argc, running.argv);
	if (running.code) {
		wchar_t text[64];

		_snwprintf(text, sizeof(text) / sizeof(text[0]), L"ended with exit code %d", running.code);
		say_in_log(EVENTLOG_ERROR_TYPE, text);
		/* Who says that it has stopped is not started again (SERVICE_FAILURE_ACTIONS); who ends without a word is. */
		if (running.again(running.code))
			ExitProcess((UINT)running.code);
		running.status.dwWin32ExitCode = ERROR_SERVICE_SPECIFIC_ERROR;
		running.status.dwServiceSpecificExitCode = (DWORD)running.code;
	} else {
		say_in_log(EVENTLOG_INFORMATION_TYPE, L"ended");
	}
	say_state(SERVICE_STOPPED, 0);
}

unsigned long port_service_run(const char *name, service_body *body, service_again *again, int argc, char **argv)
{
	SERVICE_TABLE_ENTRYW table[] = { { running.name, service_main }, { NULL, NULL } };

	if (!wide_from(name, running.name, NAME_LENGTH))
		return ERROR_INVALID_PARAMETER;
	running.body = body;
	running.again = again;
	running.argc = argc;
	running.argv = argv;
	return StartServiceCtrlDispatcherW(table) ? 0 : GetLastError();
}
