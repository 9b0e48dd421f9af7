/* SPDX-License-Identifier: Apache-2.0 */
#include "timeservice/server_keys.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "port/port_cmac.h"
#include "port/port_secret.h"
#include "timeservice/keys.h"

enum { FILE_BYTES_MAX = 65536 };

_Static_assert((int)KEYS_ERROR_BYTES == (int)SETTINGS_ERROR_BYTES, "one line of both");

static int open_key(struct server_settings *server, const char *path, const char *text, size_t length,
		    char error[SETTINGS_ERROR_BYTES])
{
	struct key key = { 0 };
	int err = keys_find(path, text, length, server->key, &key, error);

	if (err)
		return err;
	err = port_cmac_open(key.bytes, key.size_bytes, &server->cmac);
	port_secret_wipe(&key, sizeof(key));
	if (err == -ENOTSUP)
		snprintf(error, SETTINGS_ERROR_BYTES, "key %u: this system has no AES-CMAC that this program may use", server->key);
	else if (err)
		snprintf(error, SETTINGS_ERROR_BYTES, "key %u: %s", server->key, strerror(-err));
	return err;
}

static int open_all(struct settings *settings, const char *text, size_t length, char error[SETTINGS_ERROR_BYTES])
{
	int err = 0;

	for (int i = 0; i < settings->server_count && !err; i++)
		if (settings->servers[i].key)
			err = open_key(&settings->servers[i], settings->key_file, text, length, error);
	return err;
}

int server_keys_open(struct settings *settings, char error[SETTINGS_ERROR_BYTES])
{
	const char *path = settings->key_file;
	int64_t length;
	char *text;
	int err, keys = 0;

	for (int i = 0; i < settings->server_count; i++)
		keys += settings->servers[i].key != 0;
	if (!keys)
		return 0;
	text = malloc(FILE_BYTES_MAX);
	length = text ? port_secret_read(path, text, FILE_BYTES_MAX) : -ENOMEM;
	if (length >= 0) {
		err = open_all(settings, text, (size_t)length, error);
		port_secret_wipe(text, FILE_BYTES_MAX);
	} else {
		err = (int)length;
		if (err == -EPERM)
			snprintf(error, SETTINGS_ERROR_BYTES, "%.256s: others may read or write it; allowed: %s", path, port_secret_allowed());
		else if (err == -EFBIG)
			snprintf(error, SETTINGS_ERROR_BYTES, "%.256s: too long; allowed: fewer than %d bytes", path, FILE_BYTES_MAX);
		else
			snprintf(error, SETTINGS_ERROR_BYTES, "%.256s: %s", path, strerror(-err));
	}
	free(text);
	return err;
}

void server_keys_close(struct settings *settings)
{
	for (int i = 0; i < settings->server_count; i++) {
		port_cmac_close(settings->servers[i].cmac);
		settings->servers[i].cmac = NULL;
	}
}
