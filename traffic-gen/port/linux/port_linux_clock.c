/* SPDX-License-Identifier: Apache-2.0 */
/* Port layer for Linux: clocks of the kernel and PTP hardware clocks. */
#define _GNU_SOURCE
#include "port/port_clock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/ptp_clock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/time_units.h"

#define FACT_BYTES 128

struct port_phc {
	int fd;
	clockid_t clock;
};

static int64_t timespec_ns(const struct timespec *ts)
{
	return ts->tv_sec * NS_PER_S + ts->tv_nsec;
}

static inline clockid_t kernel_clock_id(enum port_kernel_clock clock)
{
	static const clockid_t ids[] = {
		[PORT_KERNEL_REALTIME] = CLOCK_REALTIME,
		[PORT_KERNEL_REALTIME_COARSE] = CLOCK_REALTIME_COARSE,
		[PORT_KERNEL_TAI] = CLOCK_TAI,
		[PORT_KERNEL_MONOTONIC] = CLOCK_MONOTONIC,
		[PORT_KERNEL_MONOTONIC_RAW] = CLOCK_MONOTONIC_RAW,
	};

	return ids[clock];
}

int port_kernel_clock_check(enum port_kernel_clock clock)
{
	struct timespec ts;

	return clock_gettime(kernel_clock_id(clock), &ts) ? -ENOTSUP : 0;
}

int64_t port_kernel_clock_now_ns(enum port_kernel_clock clock)
{
	struct timespec ts;

	clock_gettime(kernel_clock_id(clock), &ts); /* cannot fail: the clock was checked */
	return timespec_ns(&ts);
}

void port_kernel_clock_touch(enum port_kernel_clock clock)
{
	struct timespec ts;

	clock_gettime(kernel_clock_id(clock), &ts);
	__asm__ volatile("" : : "r"(&ts) : "memory"); /* the reading counts as used */
}

static int read_text(const char *path, char *text, size_t size_bytes)
{
	FILE *file = fopen(path, "re");
	size_t length;

	if (!file)
		return -errno;
	length = fread(text, 1, size_bytes - 1, file);
	fclose(file);
	text[length] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return 0;
}

void port_clocksource(char *name, size_t size_bytes)
{
	if (read_text("/sys/devices/system/clocksource/clocksource0/current_clocksource", name, size_bytes))
		name[0] = '\0';
}

int port_phc_open(const char *path, struct port_phc **phc_out)
{
	struct ptp_clock_caps caps;
	struct port_phc *phc;
	int fd = open(path, O_RDWR | O_CLOEXEC);

	if (fd < 0 && errno == EACCES)
		fd = open(path, O_RDONLY | O_CLOEXEC); /* enough for reading on most kernels */
	if (fd < 0)
		return -errno;
	if (ioctl(fd, PTP_CLOCK_GETCAPS, &caps)) {
		close(fd);
		return -ENOTTY;
	}
	phc = malloc(sizeof(*phc));
	if (!phc) {
		close(fd);
		return -ENOMEM;
	}
	phc->fd = fd;
	phc->clock = (clockid_t)((~(unsigned int)fd << 3) | 3); /* FD_TO_CLOCKID of the kernel's documentation */
	*phc_out = phc;
	return 0;
}

void port_phc_close(struct port_phc *phc)
{
	if (!phc)
		return;
	close(phc->fd);
	free(phc);
}

int port_phc_now_ns(const struct port_phc *phc, int64_t *phc_ns)
{
	struct timespec ts;

	if (clock_gettime(phc->clock, &ts))
		return -errno;
	*phc_ns = timespec_ns(&ts);
	return 0;
}

static int64_t ptp_time_ns(const struct ptp_clock_time *time)
{
	return time->sec * NS_PER_S + time->nsec;
}

/* A request that driver or kernel do not know. */
static int refused(void)
{
	return errno == EOPNOTSUPP || errno == ENOTTY || errno == EINVAL || errno == ENOSYS ? -ENOTSUP : -errno;
}

static int cross_precise(const struct port_phc *phc, struct port_phc_cross *cross)
{
	struct ptp_sys_offset_precise offset = { .device = { .sec = 0 } };

	if (ioctl(phc->fd, PTP_SYS_OFFSET_PRECISE, &offset))
		return refused();
	cross->phc_ns = ptp_time_ns(&offset.device);
	cross->before_realtime_ns = cross->after_realtime_ns = ptp_time_ns(&offset.sys_realtime);
	return 0;
}

static int cross_extended(const struct port_phc *phc, struct port_phc_cross *cross)
{
	struct ptp_sys_offset_extended offset = { .n_samples = 1 };

	if (ioctl(phc->fd, PTP_SYS_OFFSET_EXTENDED, &offset))
		return refused();
	cross->before_realtime_ns = ptp_time_ns(&offset.ts[0][0]);
	cross->phc_ns = ptp_time_ns(&offset.ts[0][1]);
	cross->after_realtime_ns = ptp_time_ns(&offset.ts[0][2]);
	return 0;
}

static int cross_basic(const struct port_phc *phc, struct port_phc_cross *cross)
{
	struct ptp_sys_offset offset = { .n_samples = 1 };

	if (ioctl(phc->fd, PTP_SYS_OFFSET, &offset))
		return refused();
	cross->before_realtime_ns = ptp_time_ns(&offset.ts[0]);
	cross->phc_ns = ptp_time_ns(&offset.ts[1]);
	cross->after_realtime_ns = ptp_time_ns(&offset.ts[2]);
	return 0;
}

int port_phc_cross(const struct port_phc *phc, enum port_phc_read read, struct port_phc_cross *cross)
{
	switch (read) {
	case PORT_PHC_PRECISE:
		return cross_precise(phc, cross);
	case PORT_PHC_EXTENDED:
		return cross_extended(phc, cross);
	case PORT_PHC_BASIC:
		return cross_basic(phc, cross);
	}
	return -EINVAL;
}

int port_phc_caps(const struct port_phc *phc, struct port_phc_caps *caps)
{
	struct ptp_clock_caps kernel_caps = { .max_adj = 0 };

	if (ioctl(phc->fd, PTP_CLOCK_GETCAPS, &kernel_caps))
		return -errno;
	*caps = (struct port_phc_caps){
		.max_adjustment_ppb = kernel_caps.max_adj,
		.precise = kernel_caps.cross_timestamping != 0,
		.pps = kernel_caps.pps != 0,
		.external_stamps = kernel_caps.n_ext_ts,
		.periodic_outputs = kernel_caps.n_per_out,
		.pins = kernel_caps.n_pins,
	};
	return 0;
}

/* Tell the facts of the Time Card in `folder`, if the PHC is its. */
static void time_card_facts(const char *folder, const char *phc_name, port_fact *fact, void *sink)
{
	static const char *const attributes[] = {
		"serialnum", "clock_source", "available_clock_sources", "gnss_sync", "utc_tai_offset", "clock_status_drift",
		"clock_status_offset", "external_pps_cable_delay", "internal_pps_cable_delay", "tod_correction",
	};
	char path[PATH_MAX], target[PATH_MAX], value[FACT_BYTES], key[64];
	ssize_t length;
	const char *last;

	if (snprintf(path, sizeof(path), "%s/ptp", folder) >= (int)sizeof(path))
		return;
	length = readlink(path, target, sizeof(target) - 1);
	if (length < 0)
		return;
	target[length] = '\0';
	last = strrchr(target, '/');
	if (strcmp(last ? last + 1 : target, phc_name) != 0)
		return;
	fact(sink, "time_card", strrchr(folder, '/') + 1);
	for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++) {
		if (snprintf(path, sizeof(path), "%s/%s", folder, attributes[i]) >= (int)sizeof(path))
			continue;
		if (read_text(path, value, sizeof(value)))
			continue;
		snprintf(key, sizeof(key), "time_card_%s", attributes[i]);
		fact(sink, key, value);
	}
}

void port_phc_facts(const char *class_folder, const char *path, port_fact *fact, void *sink)
{
	char resolved[PATH_MAX], folder[PATH_MAX], value[FACT_BYTES];
	const char *name = realpath(path, resolved) ? strrchr(resolved, '/') + 1 : NULL; /* /dev/ptp_igb may be a link */
	struct dirent *entry;
	DIR *cards;

	if (!name)
		name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	if (snprintf(folder, sizeof(folder), "%s/ptp/%s/clock_name", class_folder, name) < (int)sizeof(folder) &&
	    read_text(folder, value, sizeof(value)) == 0)
		fact(sink, "clock_name", value);
	if (snprintf(folder, sizeof(folder), "%s/timecard", class_folder) >= (int)sizeof(folder))
		return;
	cards = opendir(folder);
	while (cards && (entry = readdir(cards))) {
		if (entry->d_name[0] != '.' && snprintf(folder, sizeof(folder), "%s/timecard/%s", class_folder,
							entry->d_name) < (int)sizeof(folder))
			time_card_facts(folder, name, fact, sink);
	}
	if (cards)
		closedir(cards);
}
