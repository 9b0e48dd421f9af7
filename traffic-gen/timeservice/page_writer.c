/* SPDX-License-Identifier: Apache-2.0 */
/* The writing side of the page: made anew, or taken over from a service that has ended. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "port/port_timeservice.h"
#include "timeservice/fixed_mul.h"
#include "timeservice/page.h"

struct timepage {
	struct port_timepage file;
	struct timepage_image *image;
	struct timepage_line last;
	struct timepage_identity here;
	char *path; /* NULL: the system's place */
};

/* Set up a page of zeros: readers that look meanwhile find no page. */
static void set_up(struct timepage_image *image, const struct timepage_identity *here)
{
	atomic_store_explicit(&image->counter_hz, here->counter_hz, memory_order_relaxed);
	atomic_store_explicit(&image->version, TIMEPAGE_VERSION, memory_order_relaxed);
	atomic_store_explicit(&image->size_bytes, sizeof(*image), memory_order_relaxed);
	atomic_store_explicit(&image->counter_kind, here->counter_kind, memory_order_relaxed);
	for (size_t i = 0; i < TIMEPAGE_BOOT_BYTES / 8; i++)
		atomic_store_explicit(&image->boot[i], here->boot[i], memory_order_relaxed);
	atomic_store_explicit(&image->magic, TIMEPAGE_MAGIC, memory_order_release);
}

/*
 * Go on with the page that is there, if it is one to go on with. Programs that have mapped another one, of another version, would take
 * for a time what they cannot read: that is left to them as it is, and a new file takes its place.
 */
static bool take_over(struct timepage *page, const struct timepage_identity *here)
{
	const struct timepage_image *image = page->file.readable;
	const char *why;
	uint32_t sequence;

	return timepage_image_check(image, here, &why) == 0 && timepage_line_read(&image->line, &page->last, &sequence) == 0;
}

int timepage_create(const char *path, uint32_t counter_kind, uint64_t counter_hz, struct timepage **page_out)
{
	struct timepage *page = calloc(1, sizeof(*page));
	int err;

	if (!page)
		return -ENOMEM;
	page->here = (struct timepage_identity){ .counter_kind = counter_kind, .counter_hz = counter_hz };
	if (path)
		page->path = strdup(path);
	err = path && !page->path ? -ENOMEM : port_boot_id(page->here.boot);
	if (!err)
		err = port_timepage_create(path, TIMEPAGE_BYTES, &page->file);
	if (!err && !take_over(page, &page->here)) {
		err = port_timepage_renew(path, TIMEPAGE_BYTES, &page->file);
		if (!err)
			set_up(page->file.writable, &page->here);
	}
	if (err) {
		free(page->path);
		free(page);
		return err;
	}
	page->image = page->file.writable;
	atomic_store_explicit(&page->image->counter_hz, counter_hz, memory_order_relaxed);
	*page_out = page;
	return 0;
}

int timepage_keep(struct timepage *page)
{
	struct timepage_line withdrawn = page->last;
	struct port_timepage old;
	int err = port_timepage_is_there(page->path, &page->file);

	if (err)
		return err < 0 ? err : 0;
	err = port_timepage_remake(page->path, TIMEPAGE_BYTES, &page->file, &old);
	if (err)
		return err;
	page->image = page->file.writable;
	if (page->last.state != TIMEPAGE_NONE)
		timepage_line_write(&page->image->line, &page->last);
	set_up(page->image, &page->here);
	withdrawn.state = TIMEPAGE_UNSYNCHRONISED;
	withdrawn.reason = TIMEPAGE_REASON_REMADE;
	timepage_line_write(&((struct timepage_image *)old.writable)->line, &withdrawn);
	port_timepage_close(&old);
	return 1;
}

const struct timepage_line *timepage_last(const struct timepage *page)
{
	return &page->last;
}

int timepage_publish(struct timepage *page, const struct timepage_line *line)
{
	struct timepage_line next = *line;

	next.publications = page->last.publications + 1;
	next.settled_utc_ns = (int64_t)((uint64_t)next.base_utc_ns + fixed_mul(next.settled_ticks - next.base_ticks, next.mult));
	if (timepage_line_check(&next))
		return -EINVAL;
	page->last = next;
	timepage_line_write(&page->image->line, &next);
	return 0;
}

void timepage_publish_status(struct timepage *page, const struct timepage_status *status)
{
	timepage_status_write(&page->image->status, status);
}

void timepage_close(struct timepage *page)
{
	if (!page)
		return;
	port_timepage_close(&page->file);
	free(page->path);
	free(page);
}
