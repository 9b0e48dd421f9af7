/* SPDX-License-Identifier: Apache-2.0 */
/* Facts of PTP hardware clocks and Time Cards, from a folder made like /sys/class. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "text_file.h"
#include "port/port_clock.h"

static char told[1024];

static void note(void *sink, const char *key, const char *value)
{
	size_t used = strlen(told);

	CHECK(sink == told);
	snprintf(told + used, sizeof(told) - used, "%s=%s;", key, value);
}

static void make_folder(const char *base, const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", base, name);
	CHECK_INT(mkdir(path, 0700), 0);
}

static void ask(const char *base, const char *device)
{
	told[0] = '\0';
	port_phc_facts(base, device, note, told);
}

int main(void)
{
	char base[] = "/tmp/bw-facts-XXXXXX", path[256], command[300];

	CHECK(mkdtemp(base) != NULL);
	make_folder(base, "ptp");
	make_folder(base, "ptp/ptp7");
	write_text(base, "ptp/ptp7/clock_name", "ptp_ocp\n");
	make_folder(base, "ptp/ptp8");
	write_text(base, "ptp/ptp8/clock_name", "igb\n");
	make_folder(base, "timecard");
	make_folder(base, "timecard/ocp0");
	write_text(base, "timecard/ocp0/serialnum", "0123456789ab\n");
	write_text(base, "timecard/ocp0/clock_source", "PPS\n");
	write_text(base, "timecard/ocp0/gnss_sync", "SYNC\n");
	write_text(base, "timecard/ocp0/utc_tai_offset", "37\n");
	snprintf(path, sizeof(path), "%s/timecard/ocp0/ptp", base);
	CHECK_INT(symlink("../../ptp/ptp7", path), 0);

	ask(base, "/dev/ptp7");
	CHECK_TEXT(told, "clock_name=ptp_ocp;time_card=ocp0;time_card_serialnum=0123456789ab;time_card_clock_source=PPS;"
			 "time_card_gnss_sync=SYNC;time_card_utc_tai_offset=37;");
	ask(base, "/dev/ptp8");
	CHECK_TEXT(told, "clock_name=igb;");
	ask(base, "/dev/ptp9");
	CHECK_TEXT(told, "");
	ask("/nowhere", "/dev/ptp7");
	CHECK_TEXT(told, "");
	snprintf(command, sizeof(command), "rm -r %s", base);
	CHECK_INT(system(command), 0);
	return check_result();
}
