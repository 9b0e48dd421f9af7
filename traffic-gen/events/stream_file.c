/* SPDX-License-Identifier: Apache-2.0 */
#include "events/stream_file.h"

#include <errno.h>

int stream_failure(void)
{
	return errno ? -errno : -EIO;
}

int stream_block_write(FILE *file, enum stream_block_kind kind, unsigned int ring, uint64_t position, const void *data,
		       size_t size_bytes, const void *more, size_t more_bytes)
{
	const struct stream_block block = {
		EVENTS_BYTE_ORDER, (uint16_t)kind, (uint16_t)ring, position, size_bytes + more_bytes,
	};

	if (fwrite(&block, sizeof(block), 1, file) != 1)
		return stream_failure();
	if (size_bytes && fwrite(data, size_bytes, 1, file) != 1)
		return stream_failure();
	if (more_bytes && fwrite(more, more_bytes, 1, file) != 1)
		return stream_failure();
	return 0;
}
