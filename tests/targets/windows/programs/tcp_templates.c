/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in for powershell.exe and netsh.exe, which Wine has not: settings of Windows' TCP templates, kept in templates.txt beside it.
 * It knows the two calls that targets/windows/src/kinds.c makes, and the ranges that Microsoft documents; anything else ends with 1.
 */
#include <windows.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct property {
	const char *name, *word;
	unsigned long value, lowest, highest;
} properties[] = { { "MinRtoMs", "minrto", 300, 20, 300 },
		   { "DelayedAckTimeoutMs", "delayedacktimeout", 40, 10, 600 },
		   { "DelayedAckFrequency", "delayedackfrequency", 2, 1, 255 } };
enum { COUNT = sizeof(properties) / sizeof(properties[0]) };

static void name_file(char path[MAX_PATH])
{
	GetModuleFileNameA(NULL, path, MAX_PATH);
	strcpy(strrchr(path, '\\') + 1, "templates.txt");
}

static void keep(bool write)
{
	char path[MAX_PATH];
	FILE *file;

	name_file(path);
	file = fopen(path, write ? "w" : "r");
	for (int i = 0; i < COUNT && file; i++) {
		if (write)
			fprintf(file, "%s %lu\n", properties[i].name, properties[i].value);
		else if (fscanf(file, "%*s %lu", &properties[i].value) != 1)
			exit(1);
	}
	if (file)
		fclose(file);
}

int main(int argc, char **argv)
{
	static const char set[] = "int tcp set supplemental template=Internet ";
	char line[512] = "", wanted[128];

	for (int i = 1; i < argc; i++)
		snprintf(line + strlen(line), sizeof(line) - strlen(line), "%s%s", i > 1 ? " " : "", argv[i]);
	keep(false);
	for (int i = 0; i < COUNT; i++) {
		struct property *each = &properties[i];
		unsigned long value;

		snprintf(wanted, sizeof(wanted), "-NoProfile -NonInteractive -Command (Get-NetTCPSetting -SettingName Internet).%s", each->name);
		if (strcmp(line, wanted) == 0) {
			printf("%lu\r\n", each->value);
			return 0;
		}
		if (strncmp(line, set, strlen(set)) != 0 || strncmp(line + strlen(set), each->word, strlen(each->word)) != 0)
			continue;
		value = strtoul(line + strlen(set) + strlen(each->word) + 1, NULL, 10);
		if (value < each->lowest || value > each->highest)
			return 1;
		each->value = value;
		keep(true);
		return 0;
	}
	return 1;
}
