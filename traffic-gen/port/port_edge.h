/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The port layer of bw-edge: pins of PTP hardware clocks, lines of GPIO chips, generators of pulses per second. As in port.h,
 * functions return 0 or -errno and never print; -ENOTSUP: this system, or this device, has no such thing.
 */
#ifndef BW_PORT_EDGE_H
#define BW_PORT_EDGE_H

#include <stdbool.h>
#include <stdint.h>

/* ---- pins of a PTP hardware clock -------------------------------------------------------------------------------------- */

struct port_ptp_pin; /* opaque */

/* Which edges of a signal are captured. */
enum port_ptp_edges { PORT_PTP_RISING, PORT_PTP_BOTH };

/**
 * Open a PTP device for one of its pins.
 *
 * @param pin      number of the pin, or -1: the device has none that can be chosen, and the channel is wired for good
 * @param channel  of periodic outputs or external stamps
 * @return 0, -ENOTTY (no PTP device), -ENXIO (it has no such pin), or -errno
 */
int port_ptp_pin_open(const char *path, int pin, int channel, struct port_ptp_pin **pin_out);
void port_ptp_pin_close(struct port_ptp_pin *pin);
/** Time of the clock. */
int port_ptp_pin_now_ns(const struct port_ptp_pin *pin, int64_t *phc_ns);
/** Pulses at start, start + period, ...; start is in the future. @return 0, -ENXIO (no such channel), -ENOTSUP, or -errno */
int port_ptp_pin_periodic(struct port_ptp_pin *pin, int64_t start_phc_ns, int64_t period_ns);
/** One pulse at an instant in the future. @return 0, -ENOTSUP: the driver makes none */
int port_ptp_pin_one_shot(struct port_ptp_pin *pin, int64_t at_phc_ns);
/** Make no more pulses. */
int port_ptp_pin_stop(struct port_ptp_pin *pin);
/** Begin to capture. @return 0, -ENXIO (no such channel), -ENOTSUP: these edges cannot be told apart, or -errno */
int port_ptp_pin_capture(struct port_ptp_pin *pin, enum port_ptp_edges edges);
/** Wait for a captured edge of this channel. @return 0, -ETIMEDOUT, -EINTR, or -errno */
int port_ptp_pin_captured(struct port_ptp_pin *pin, int64_t *phc_ns, int64_t timeout_ns);
int port_ptp_pin_capture_end(struct port_ptp_pin *pin);

/* ---- lines of a GPIO chip ----------------------------------------------------------------------------------------------- */

struct port_gpio_line; /* opaque */

/** Open a chip for one of its lines. @return 0, -ENOTTY (no GPIO chip), -ENXIO (no such line), or -errno */
int port_gpio_open(const char *path, unsigned int line, struct port_gpio_line **line_out);
void port_gpio_close(struct port_gpio_line *line);
/** Make the line an output, low. @return 0, -EBUSY, or -errno */
int port_gpio_output(struct port_gpio_line *line);
/** Set an output. One system call. */
int port_gpio_set(struct port_gpio_line *line, bool high);
/** Make the line an input whose rising edges are captured. @return 0, -EBUSY, -ENOTSUP, or -errno */
int port_gpio_capture(struct port_gpio_line *line);
/**
 * Wait for a captured edge.
 *
 * @param sequence     number of the edge, from 1; a gap is a lost one
 * @param realtime_ns  CLOCK_REALTIME of the interrupt
 * @return 0, -ETIMEDOUT, -EINTR, or -errno
 */
int port_gpio_captured(struct port_gpio_line *line, uint32_t *sequence, int64_t *realtime_ns, int64_t timeout_ns);
/** Give the line back. */
void port_gpio_release(struct port_gpio_line *line);

/* ---- generators of pulses per second ------------------------------------------------------------------------------------ */

/**
 * Check a generator.
 *
 * @param folder  "/sys/class/pps-gen/pps-gen0"
 * @return 0, -ENODEV (no generator there), -ENOTSUP (it does not follow the system's clock), or -errno
 */
int port_pps_check(const char *folder);
/** Switch its pulses on or off. @return 0, -EACCES, or -errno */
int port_pps_enable(const char *folder, bool on);

#endif
