/* SPDX-License-Identifier: Apache-2.0 */
/* What a Windows machine is, as one JSON object. Nothing in it changes by itself: equal bytes, equal machine. */
#ifndef BW_WINDOWS_FACTS_H
#define BW_WINDOWS_FACTS_H

#include "base/json.h"
#include "port_machine.h"

/**
 * Print the facts.
 *
 * @param settings  file whose settings are read, with the places that they have here
 * @param error     as of settings_each
 * @return false where the settings are wrong, or stdout cannot be written
 */
bool facts_print(struct json *json, const struct machine *machine, const char *settings, char error[512]);

#endif
