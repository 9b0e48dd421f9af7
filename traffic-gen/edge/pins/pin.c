/* SPDX-License-Identifier: Apache-2.0 */
#include "edge/pins/pin.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "config/options.h"

static const struct edge_pin_kind *const kinds[] = {
	&edge_pin_bench, &edge_pin_ptp, &edge_pin_tgpio, &edge_pin_gpio, &edge_pin_pps,
};

static const struct edge_pin_kind *find(const char *text, size_t length)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strlen(kinds[i]->name) == length && memcmp(kinds[i]->name, text, length) == 0)
			return kinds[i];
	}
	return NULL;
}

int edge_pin_open(struct edge_pin *pin, const char *text, int tai_utc_s, char *error, size_t error_bytes)
{
	size_t length = strcspn(text, ":");
	const struct edge_pin_kind *kind = find(text, length);
	char why[EDGE_PIN_ERROR_BYTES] = "";
	int err;

	memset(pin, 0, sizeof(*pin));
	if (!kind || text[length] != ':' || text[length + 1] == '\0') {
		snprintf(error, error_bytes, "unknown pin \"%s\"; allowed: bench:OUTPUT, ptp:/dev/ptpN,pin=N,channel=N, "
			 "tgpio:/dev/ptpN,pin=N,channel=N, gpio:/dev/gpiochipN,line=N, tgpio-pps:/sys/class/pps-gen/pps-genN", text);
		return -EINVAL;
	}
	pin->text = text;
	pin->kind = kind;
	pin->tai_utc_s = tai_utc_s;
	err = kind->open(pin, text + length + 1, why, sizeof(why));
	if (err) {
		snprintf(error, error_bytes, "pin \"%s\": %s", text, why[0] ? why : strerror(-err));
		pin->kind = NULL;
	}
	return err;
}

void edge_pin_close(struct edge_pin *pin)
{
	if (pin->kind && pin->kind->close)
		pin->kind->close(pin);
	pin->kind = NULL;
}

int edge_pin_exit_code(int err)
{
	return err == -EINVAL ? EXIT_BAD_INPUT : EXIT_CAPABILITY;
}
