/* SPDX-License-Identifier: Apache-2.0 */
/* Port layer: a Windows machine's adapters, registry, services and power plans. Texts are UTF-8. */
#ifndef BW_WINDOWS_PORT_MACHINE_H
#define BW_WINDOWS_PORT_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NAME_BYTES = 256, KEY_BYTES = 400, ADAPTERS_MAX = 64 };

struct adapter {
	char name[NAME_BYTES];        /* as people see it: "Ethernet 2" */
	char guid[64];                /* "{…}" */
	char description[NAME_BYTES];
	char mac[32];
	char class_key[KEY_BYTES];    /* of its driver's settings, below HKLM; empty where there is none */
	unsigned long mtu;
	unsigned long long speed_bit_per_s; /* 0: unknown */
	bool up;
};

struct machine {
	const struct adapter *test; /* the adapter of the test network; NULL: none was named */
};

/** List the adapters of Ethernet, by name. @return their number */
int adapters_list(struct adapter *adapters, int capacity);

/* What was found where the registry was looked at. */
enum registry_read {
	REGISTRY_READ,
	REGISTRY_ABSENT,     /* there is no such value */
	REGISTRY_UNREADABLE, /* there is one: of another type, too long, or this process may not read it */
};

/** Read a text or a number of the registry, below HKLM; text is empty, and number as it was, unless it was read. */
enum registry_read registry_text(const char *key, const char *value, char *text, size_t size);
enum registry_read registry_number(const char *key, const char *value, uint32_t *number);
/** Look whether there is a key. REGISTRY_READ: there is. */
enum registry_read registry_key(const char *key);
/** Set a value of a key that is there. @return 0 when it is on the disk, or the system's error */
unsigned long registry_put_number(const char *key, const char *value, uint32_t number);
unsigned long registry_put_text(const char *key, const char *value, const char *text);
unsigned long registry_delete(const char *key, const char *value);

/** Put values in the place of %variables%. @return false where they do not fit */
bool environment_expand(const char *text, char *expanded, size_t size);

struct guid {
	uint32_t data1;
	uint16_t data2, data3;
	uint8_t data4[8];
};

/** The power plan that is active. @return 0, or the system's error */
unsigned long power_plan_read(struct guid *plan);
unsigned long power_plan_write(const struct guid *plan);

void machine_pause_ms(unsigned long duration_ms);

/** Run a program of Windows without a window. @return its exit code, or -1 where it could not be run */
int program_run(const char *command_line, unsigned long timeout_ms);

/**
 * Run one likewise and take the number that it prints, alone on its line.
 *
 * @return false: it could not be run, or printed none
 */
bool program_number(const char *command_line, unsigned long timeout_ms, unsigned long *number);

/** Ask the service manager. @return false where there is no such service */
bool service_running(const char *name, bool *running);

/** Version of Windows, of the system itself: what it tells programs may be an older one. */
void system_version(unsigned long *major, unsigned long *minor, unsigned long *build);

/** Version of Wine ("8.0"); empty on a real Windows. */
const char *wine_version(void);

#endif
