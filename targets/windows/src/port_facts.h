/* SPDX-License-Identifier: Apache-2.0 */
/* Port layer: what a Windows machine says of itself beside its registry. */
#ifndef BW_WINDOWS_PORT_FACTS_H
#define BW_WINDOWS_PORT_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void fact_host_name(char *name, size_t size);
int fact_processors(void);
uint64_t fact_memory_bytes(void);
int64_t fact_performance_counter_hz(void);
/** A Windows that has Hyper-V switched on runs above it, and says so, too. */
bool fact_hypervisor(void);
/** Version of a program as its file says, of a path with %variables%; an empty text where it does not. */
void fact_file_version(const char *path, char version[64]);
/** Finest period of the system's timer. @return false where it does not say */
bool fact_timer_finest_100ns(unsigned long *finest_100ns);

#endif
