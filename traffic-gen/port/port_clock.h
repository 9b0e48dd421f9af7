/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The port layer of bw-clock: the processor's counter, the kernel's clocks, PTP hardware clocks, shared pages, plug-ins
 * and the count of retired instructions. As in port.h, functions return 0 or -errno and never print; -ENOTSUP: this
 * system has no such thing.
 */
#ifndef BW_PORT_CLOCK_H
#define BW_PORT_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- the processor's counter ------------------------------------------------------------------------------------- */

enum port_counter_kind {
	PORT_COUNTER_NONE = 0,
	PORT_COUNTER_TSC = 1,    /* x86: RDTSC */
	PORT_COUNTER_CNTVCT = 2, /* ARM: the virtual count register */
};

#if defined(__x86_64__) || defined(__i386__)
#define PORT_COUNTER PORT_COUNTER_TSC
#define PORT_COUNTER_ORDERED 0

/** Read the counter; nothing before it is read later, nothing after it earlier. */
static inline uint64_t port_counter_read(void)
{
	uint32_t low, high;

	__asm__ volatile("lfence\n\trdtsc\n\tlfence" : "=a"(low), "=d"(high) : : "memory");
	return (uint64_t)high << 32 | low;
}

/** Read the counter before something: not later than what follows, if that reads a clock or orders itself. Cheap. */
static inline uint64_t port_counter_before(void)
{
	uint32_t low, high;

	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high) : : "memory");
	return (uint64_t)high << 32 | low;
}

/** Read the counter after something: not earlier than all that precedes. */
static inline uint64_t port_counter_after(void)
{
	uint32_t low, high;

	__asm__ volatile("lfence\n\trdtsc" : "=a"(low), "=d"(high) : : "memory");
	return (uint64_t)high << 32 | low;
}

/** Its ticks per second where the architecture tells, else 0: to be measured. */
static inline uint64_t port_counter_stated_hz(void)
{
	return 0;
}

static inline void port_counter_pause(void)
{
	__asm__ volatile("pause" : : : "memory");
}
#elif defined(__aarch64__)
#define PORT_COUNTER PORT_COUNTER_CNTVCT
#define PORT_COUNTER_ORDERED 1

static inline uint64_t port_counter_read(void)
{
	uint64_t count;

	__asm__ volatile("isb\n\tmrs %0, cntvct_el0\n\tisb" : "=r"(count) : : "memory");
	return count;
}

static inline uint64_t port_counter_stated_hz(void)
{
	uint64_t hz;

	__asm__ volatile("mrs %0, cntfrq_el0" : "=r"(hz));
	return hz;
}

static inline void port_counter_pause(void)
{
	__asm__ volatile("yield" : : : "memory");
}
#elif defined(__arm__) && defined(__ARM_ARCH) && __ARM_ARCH >= 7
#define PORT_COUNTER PORT_COUNTER_CNTVCT
#define PORT_COUNTER_TRIED 1
#define PORT_COUNTER_ORDERED 1

static inline uint64_t port_counter_read(void)
{
	uint64_t count;

	__asm__ volatile("isb\n\tmrrc p15, 1, %Q0, %R0, c14\n\tisb" : "=r"(count) : : "memory");
	return count;
}

static inline uint64_t port_counter_stated_hz(void)
{
	uint32_t hz;

	__asm__ volatile("mrc p15, 0, %0, c14, c0, 0" : "=r"(hz));
	return hz;
}

static inline void port_counter_pause(void)
{
	__asm__ volatile("yield" : : : "memory");
}
#else
#define PORT_COUNTER PORT_COUNTER_NONE
#define PORT_COUNTER_ORDERED 1

static inline uint64_t port_counter_read(void)
{
	return 0;
}

static inline uint64_t port_counter_stated_hz(void)
{
	return 0;
}

static inline void port_counter_pause(void)
{
}
#endif

#if PORT_COUNTER_TRIED
/**
 * Which counter this machine has. A processor of ARMv7 without the generic timer (Cortex-A8, A9) ends a program that reads it: it
 * is tried once. Ask before anything else of the counter, and not first in a real-time thread.
 */
enum port_counter_kind port_counter_kind(void);
#else
static inline enum port_counter_kind port_counter_kind(void)
{
	return PORT_COUNTER;
}
#endif

#if PORT_COUNTER_ORDERED
/* Reading it is ordered, or there is nothing to read: no cheaper ways. */
static inline uint64_t port_counter_before(void)
{
	return port_counter_read();
}

static inline uint64_t port_counter_after(void)
{
	return port_counter_read();
}
#endif

/** Name of what the kernel keeps its own time with ("tsc"); empty where it cannot be told. */
void port_clocksource(char *name, size_t size_bytes);

/* ---- clocks of the kernel ---------------------------------------------------------------------------------------- */

enum port_kernel_clock {
	PORT_KERNEL_REALTIME,
	PORT_KERNEL_REALTIME_COARSE,
	PORT_KERNEL_TAI,           /* as the kernel has it, whether it knows TAI - UTC or not */
	PORT_KERNEL_MONOTONIC,
	PORT_KERNEL_MONOTONIC_RAW,
};

/** @return 0, or -ENOTSUP where this system has no such clock */
int port_kernel_clock_check(enum port_kernel_clock clock);
/** Read a clock that was checked. Real-time safe: no system call where the kernel offers a way without. */
int64_t port_kernel_clock_now_ns(enum port_kernel_clock clock);
/** Read a clock and throw the reading away: what reading alone costs. */
void port_kernel_clock_touch(enum port_kernel_clock clock);

/* ---- PTP hardware clocks ----------------------------------------------------------------------------------------- */

enum port_phc_read {
	PORT_PHC_PRECISE,  /* both clocks latched at one instant by the hardware */
	PORT_PHC_EXTENDED, /* system clock right before and after the reading of the PHC, by its driver */
	PORT_PHC_BASIC,    /* system clock before and after the driver's call */
};

struct port_phc; /* opaque */

/* System clock, PHC, system clock; CLOCK_REALTIME and the PHC's own time. PRECISE: before = after. */
struct port_phc_cross {
	int64_t before_realtime_ns;
	int64_t phc_ns;
	int64_t after_realtime_ns;
};

struct port_phc_caps {
	int64_t max_adjustment_ppb;
	bool precise; /* the driver says that it has cross time stamps */
	bool pps;
	int external_stamps, periodic_outputs, pins;
};

/** Receives one fact of a device; both texts are the caller's. */
typedef void port_fact(void *sink, const char *key, const char *value);

int port_phc_open(const char *path, struct port_phc **phc_out);
void port_phc_close(struct port_phc *phc);
/** @return 0 or -errno (-ENODEV: the device has gone) */
int port_phc_now_ns(const struct port_phc *phc, int64_t *phc_ns);
/** @return 0, -ENOTSUP where driver or kernel have no such reading, or -errno */
int port_phc_cross(const struct port_phc *phc, enum port_phc_read read, struct port_phc_cross *cross);
int port_phc_caps(const struct port_phc *phc, struct port_phc_caps *caps);
/**
 * Tell what the system says of a PHC: the driver's name for it; of a Time Card also its serial number, what it follows and
 * how well (Documentation/ABI/testing/sysfs-timecard of Linux).
 *
 * @param class_folder  "/sys/class"; another one in tests
 * @param path          device file, "/dev/ptp0"
 */
void port_phc_facts(const char *class_folder, const char *path, port_fact *fact, void *sink);

/* ---- shared pages ------------------------------------------------------------------------------------------------ */

struct port_page {
	void *address;
	size_t size_bytes;
	intptr_t handle; /* internal */
};

/**
 * Find the shared page of a guest: the memory of the first ivshmem PCI device (1af4:1110).
 *
 * @return 0, -ENODEV when there is none, or -ENOTSUP
 */
int port_page_find(char *path, size_t size_bytes);
/**
 * Map a page, readable and writable, shared with all that map the same.
 *
 * @param create  make a file of that size if there is none, or a shorter one longer
 * @return 0, -EMSGSIZE when it is shorter than size_bytes, or -errno
 */
int port_page_map(const char *path, size_t size_bytes, bool create, struct port_page *page);
void port_page_unmap(struct port_page *page);
/**
 * Lock one of several locks of a page against other processes of this machine; it ends with the process.
 *
 * @return 0, -EBUSY when another one still has it after timeout_ns, or -errno
 */
int port_page_lock(const struct port_page *page, int number, int64_t timeout_ns);
void port_page_unlock(const struct port_page *page, int number);

/* ---- plug-ins ---------------------------------------------------------------------------------------------------- */

/**
 * Load a shared object and find a symbol in it.
 *
 * @param error  receives what the loader says when it fails
 * @return 0, -ENOTSUP when this program cannot load any, -ENOENT (no such object, or it cannot be loaded), -ENOSYS (no
 *         such symbol)
 */
int port_plugin_open(const char *path, const char *symbol, void **plugin_out, void **address_out, char *error,
		     size_t error_bytes);
void port_plugin_close(void *plugin);

/* ---- retired instructions ---------------------------------------------------------------------------------------- */

struct port_instructions; /* opaque: counts those of the thread that opened it, of the kernel too */

/** @return 0, -ENOTSUP or -ENOENT where the machine does not count them, -EACCES or -EPERM where it may not be used */
int port_instructions_open(struct port_instructions **instructions_out);
void port_instructions_close(struct port_instructions *instructions);
/** Read the count. It counts itself, always alike unless the thread was interrupted. */
uint64_t port_instructions_read(const struct port_instructions *instructions);

#endif
