/* SPDX-License-Identifier: Apache-2.0 */
/* The page of the time service: arithmetic, half-written copies, pages of others, hostile figures. */
#include "fake_time.h"
#include "port_test_system.h"
#include "random.h"

/* The page is mapped by readers of other builds, and the library's structs by programs: their layout does not change by chance. */
#define AT(type, field, offset) _Static_assert(offsetof(struct type, field) == (offset), #type "." #field)
AT(timepage_image, magic, 0);
AT(timepage_image, version, 8);
AT(timepage_image, size_bytes, 12);
AT(timepage_image, counter_kind, 16);
AT(timepage_image, counter_hz, 24);
AT(timepage_image, boot, 32);
AT(timepage_image, line, 256);
AT(timepage_image, status, 768);
AT(timepage_line_posting, copies, 64);
_Static_assert(TIMEPAGE_VERSION == 2 && sizeof(struct timepage_image) == 33280, "another layout is another version");
AT(bwtime_stamp, earliest_utc_ns, 8);
AT(bwtime_stamp, latest_utc_ns, 16);
AT(bwtime_stamp, bound_ns, 24);
AT(bwtime_stamp, u_ns, 32);
AT(bwtime_stamp, epoch, 40);
AT(bwtime_stamp, tai_utc_s, 48);
AT(bwtime_stamp, state, 52);
AT(bwtime_stamp, stepped, 56);
AT(bwtime_stamp, leap, 60);
_Static_assert(sizeof(struct bwtime_stamp) == 64 && sizeof(struct bwtime_timespec) == 16, "structs of the library");
AT(bwtime_condition, valid_until_utc_ns, 8);
AT(bwtime_condition, growth_ppb, 16);
AT(bwtime_condition, disruptions, 24);
AT(bwtime_condition, publications, 32);
AT(bwtime_condition, state, 40);
_Static_assert(sizeof(struct bwtime_condition) == 48, "structs of the library");

static const char *path;

/* Long multiplication in digits of 8 bits, from a digit on: slow, and nothing like what is tested. */
static uint64_t slow_mul_from(uint64_t a, uint64_t b, int first)
{
	unsigned int digits[17] = { 0 };
	uint64_t result = 0;

	for (int i = 0; i < 8; i++) {
		unsigned int carry = 0;

		for (int k = 0; k < 8; k++) {
			unsigned int sum = digits[i + k] + (unsigned int)(a >> 8 * i & 0xff) * (unsigned int)(b >> 8 * k & 0xff) + carry;

			digits[i + k] = sum & 0xff;
			carry = sum >> 8;
		}
		digits[i + 8] += carry;
	}
	for (int i = 0; i < 8; i++)
		result |= (uint64_t)digits[first + i] << 8 * i;
	return result;
}

static uint64_t slow_mul(uint64_t a, uint64_t b)
{
	return slow_mul_from(a, b, FIXED_MUL_SHIFT / 8);
}

static void test_products(void)
{
	const uint64_t edges[] = { 0, 1, 2, UINT32_MAX, UINT64_C(1) << 32, UINT64_MAX, UINT64_MAX - 1, UINT64_C(1) << 63, RATE };
	struct random random = { 3 };

	for (size_t i = 0; i < sizeof(edges) / sizeof(edges[0]); i++) {
		for (size_t k = 0; k < sizeof(edges) / sizeof(edges[0]); k++) {
			CHECK(fixed_mul_narrow(edges[i], edges[k]) == slow_mul(edges[i], edges[k]));
			CHECK(fixed_mul(edges[i], edges[k]) == slow_mul(edges[i], edges[k]));
			CHECK(fixed_mul_high_narrow(edges[i], edges[k]) == slow_mul_from(edges[i], edges[k], 8));
		}
	}
	for (int i = 0; i < 200000; i++) {
		uint64_t a = random_bits(&random) >> random_bits(&random) % 64, b = random_bits(&random) >> random_bits(&random) % 64;

		CHECK(fixed_mul_narrow(a, b) == slow_mul(a, b));
		CHECK(fixed_mul(a, b) == slow_mul(a, b));
		CHECK(fixed_mul_high_narrow(a, b) == slow_mul_from(a, b, 8));
		CHECK(fixed_mul_high(a, b) == slow_mul_from(a, b, 8));
	}
	CHECK(fixed_mul(UINT64_C(1) << 48, 12345) == 12345);
}

static void check_refused(struct timepage_line line)
{
	line.settled_utc_ns = (int64_t)((uint64_t)line.base_utc_ns + fixed_mul(line.settled_ticks - line.base_ticks, line.mult));
	CHECK_INT(timepage_line_check(&line), -EBADMSG);
}

static struct timepage_line good(void)
{
	struct timepage_line line = line_now();

	line.settled_utc_ns = line.base_utc_ns;
	line.publications = 1;
	return line;
}

/* Set one field of a good line; it must be refused. */
#define REFUSED_WITH(field, value)                  \
	do {                                        \
		struct timepage_line bad = good();  \
		bad.field = (value);                \
		check_refused(bad);                 \
	} while (0)

static void test_figures(void)
{
	struct timepage_line line = good();

	CHECK_INT(timepage_line_check(&line), 0);
	REFUSED_WITH(base_utc_ns, 0);
	REFUSED_WITH(base_utc_ns, -1);
	REFUSED_WITH(base_utc_ns, INT64_MAX);
	REFUSED_WITH(mult, 0);
	REFUSED_WITH(mult, UINT64_MAX);
	REFUSED_WITH(mult, RATE + (RATE >> 9));
	REFUSED_WITH(settled_mult, RATE - (RATE >> 9));
	REFUSED_WITH(settled_ticks, fake_ticks - 1);
	REFUSED_WITH(settled_ticks, fake_ticks + (UINT64_C(1) << 62));
	REFUSED_WITH(usable_until_ticks, fake_ticks + (UINT64_C(1) << 61));
	REFUSED_WITH(usable_until_ticks, fake_ticks + INT64_MAX);
	REFUSED_WITH(low_ns, -1);
	REFUSED_WITH(low_ns, INT64_MAX);
	REFUSED_WITH(high_ns, -1);
	REFUSED_WITH(high_ns, INT64_MAX);
	REFUSED_WITH(growth_ppb, UINT64_MAX);
	REFUSED_WITH(scatter.offset_ns2, -1);
	REFUSED_WITH(scatter.offset_ns2, NAN);
	REFUSED_WITH(scatter.cross_ns2_per_s, INFINITY);
	REFUSED_WITH(scatter.rate_ns2_per_s2, 1e40);
	REFUSED_WITH(scatter.walk_ns2_per_s3, -1e-300);
	REFUSED_WITH(state, TIMEPAGE_NONE);
	REFUSED_WITH(state, 99);
	REFUSED_WITH(reason, 256);
	REFUSED_WITH(leap, 4);
	REFUSED_WITH(leap, -1);
	REFUSED_WITH(stratum, 17);
	REFUSED_WITH(tai_utc_s, -1);
	REFUSED_WITH(tai_utc_s, 1001);
	line = good();
	line.settled_ticks += 1000;
	CHECK_INT(timepage_line_check(&line), -EBADMSG); /* the segments do not meet */
	line = good();
	CHECK_INT(timepage_usable_ticks(&line), 100 * SECOND_TICKS);
	line.usable_until_ticks = fake_ticks;
	CHECK_INT(timepage_usable_ticks(&line), 0);
	line.usable_until_ticks = fake_ticks + (UINT64_C(1) << 63) + 5; /* behind it, not far ahead */
	CHECK_INT(timepage_line_check(&line), 0);
	CHECK_INT(timepage_usable_ticks(&line), 0);
	line = (struct timepage_line){ .state = TIMEPAGE_UNSYNCHRONISED, .mult = 3 };
	CHECK_INT(timepage_line_check(&line), 0); /* nobody reads its figures */
	CHECK_TEXT(timepage_state_name(TIMEPAGE_HOLDOVER), "holdover");
	CHECK_TEXT(timepage_state_name(99), "unknown");
	CHECK_TEXT(timepage_reason_name(TIMEPAGE_REASON_HELD), "asked to hold");
	CHECK_TEXT(timepage_reason_name(200), "unknown");
	for (uint32_t reason = 0; reason < TIMEPAGE_REASONS; reason++)
		CHECK(strcmp(timepage_reason_name(reason), "unknown") != 0);
	CHECK_TEXT(timepage_server_state_name(TIMEPAGE_SERVER_FALSETICKER), "falseticker");
}

/* Field by field: between them there may be anything. */
static bool same(const struct timepage_line *a, const struct timepage_line *b)
{
	return a->base_ticks == b->base_ticks && a->base_utc_ns == b->base_utc_ns && a->mult == b->mult &&
	       a->settled_ticks == b->settled_ticks && a->settled_utc_ns == b->settled_utc_ns && a->settled_mult == b->settled_mult &&
	       a->low_ns == b->low_ns && a->high_ns == b->high_ns && a->growth_ppb == b->growth_ppb &&
	       a->scatter.offset_ns2 == b->scatter.offset_ns2 && a->scatter.cross_ns2_per_s == b->scatter.cross_ns2_per_s &&
	       a->scatter.rate_ns2_per_s2 == b->scatter.rate_ns2_per_s2 && a->scatter.walk_ns2_per_s3 == b->scatter.walk_ns2_per_s3 &&
	       a->heard_ticks == b->heard_ticks && a->disruptions == b->disruptions &&
	       a->disrupted_ticks == b->disrupted_ticks && a->usable_until_ticks == b->usable_until_ticks && a->epoch == b->epoch &&
	       a->publications == b->publications && a->step_ns == b->step_ns && a->state == b->state && a->reason == b->reason &&
	       a->leap == b->leap && a->stratum == b->stratum && a->tai_utc_s == b->tai_utc_s;
}

/* A writer that was killed while it wrote a copy: the other one is read, and the next writer fixes it. */
static void test_half_written(void)
{
	static struct timepage_line_posting posting;
	struct timepage_line line = good(), read = { .state = 0 };
	uint32_t sequence = 99, before;

	line.step_ns = -77;
	line.reason = TIMEPAGE_REASON_HELD;
	line.leap = 2;
	CHECK_INT(timepage_line_read(&posting, &read, &sequence), -ENODATA);
	CHECK_INT(sequence, 99);
	timepage_line_write(&posting, &line);
	CHECK_INT(timepage_line_read(&posting, &read, &before), 0);
	CHECK(same(&read, &line));
	atomic_store(&posting.sequence, before + 1);
	for (int i = 0; i < TIMEPAGE_LINE_WORDS / 2; i++)
		atomic_store(&posting.copies[0][i], UINT64_MAX);
	CHECK_INT(timepage_line_read(&posting, &read, &sequence), 0);
	CHECK_INT(sequence, before + 1);
	CHECK(same(&read, &line));
	line.base_utc_ns++;
	line.settled_utc_ns++;
	timepage_line_write(&posting, &line);
	CHECK_INT(timepage_line_read(&posting, &read, &sequence), 0);
	CHECK_INT(sequence % 2, 0);
	CHECK(sequence != before);
	CHECK(same(&read, &line));
}

static void test_status(void)
{
	static struct timepage_status_posting posting;
	static struct timepage_status status, read;

	CHECK_INT(timepage_status_read(&posting, &read), -ENODATA);
	memset(&status, 'x', sizeof(status));
	status.server_count = 1;
	status.history_count = 2;
	status.version[3] = '\n';
	timepage_status_write(&posting, &status);
	CHECK_INT(timepage_status_read(&posting, &read), 0);
	CHECK_INT(strlen(read.version), sizeof(read.version) - 1);
	CHECK_INT(read.version[3], '?');
	CHECK_INT(strlen(read.servers[0].address), sizeof(read.servers[0].address) - 1);
	status.server_count = TIMEPAGE_SERVERS + 1;
	timepage_status_write(&posting, &status);
	CHECK_INT(timepage_status_read(&posting, &read), -EBADMSG);
}

static void check_page(int result, const char *why)
{
	struct bwtime *handle = reader(path, 0);
	int64_t utc_ns;

	CHECK_INT(bwtime_now_ns(handle, &utc_ns), result);
	CHECK_THAT(strstr(bwtime_why(handle), why), "\"%s\" has no \"%s\"", bwtime_why(handle), why);
	bwtime_close(handle);
}

static void write_file(size_t size_bytes, int value)
{
	FILE *file = fopen(path, "wb");

	CHECK(file != NULL);
	for (size_t i = 0; file && i < size_bytes; i++)
		fputc(value, file);
	if (file)
		fclose(file);
}

static void test_foreign(void)
{
	struct timepage_line line = line_now();
	struct timepage_image *image;
	struct port_timepage file;
	struct timepage *page;

	remove_page(path);
	write_file(100, 'x');
	check_page(BWTIME_BAD_PAGE, "too short");
	write_file(TIMEPAGE_BYTES, 0);
	check_page(BWTIME_NO_SERVICE, "not set up");
	write_file(TIMEPAGE_BYTES, 'x');
	check_page(BWTIME_BAD_PAGE, "no page");
	page = service(path); /* takes what is there for nothing */
	CHECK_INT(timepage_last(page)->publications, 0);
	CHECK_INT(timepage_publish(page, &line), 0);
	check_page(0, "");
	line.low_ns = -1;
	CHECK_INT(timepage_publish(page, &line), -EINVAL);
	timepage_close(page);
	CHECK_INT(port_timepage_create(path, TIMEPAGE_BYTES, &file), 0);
	image = file.writable;
	atomic_store(&image->version, TIMEPAGE_VERSION + 1);
	check_page(BWTIME_BAD_VERSION, "version");
	atomic_store(&image->version, TIMEPAGE_VERSION);
	atomic_fetch_add(&image->boot[1], 1);
	check_page(BWTIME_NO_SERVICE, "earlier boot");
	atomic_fetch_sub(&image->boot[1], 1);
	fake_kind = PORT_COUNTER_CNTVCT;
	check_page(BWTIME_BAD_COUNTER, "another counter");
	fake_kind = PORT_COUNTER_NONE;
	check_page(BWTIME_BAD_COUNTER, "no counter");
	fake_kind = PORT_COUNTER_TSC;
	check_page(0, "");
	for (int copy = 0; copy < 2; copy++)
		atomic_store(&image->line.copies[copy][2], UINT64_MAX); /* mult */
	check_page(BWTIME_BAD_PAGE, "cannot be");
	/* A page of an earlier boot is no page to go on with. */
	atomic_fetch_add(&image->boot[0], 1);
	port_timepage_close(&file);
	page = service(path);
	CHECK_INT(timepage_last(page)->state, TIMEPAGE_NONE);
	timepage_close(page);
	if (port_test_open_to_all(path)) {
		check_page(BWTIME_DENIED, "others");
		CHECK_INT(timepage_create(path, fake_kind, 0, &page), -EPERM);
	}
	remove_page(path);
	if (port_test_make_fifo(path))
		check_page(BWTIME_DENIED, "no regular file");
	remove_page(path);
}

/* A service of another version does not write under readers of this one: they go on by what was published for them. */
static void test_other_version(void)
{
	struct timepage *page;
	struct timepage_line line;
	struct timepage_image *image;
	struct port_timepage file;
	struct bwtime *handle;
	int64_t before_ns, after_ns, new_ns;

	remove_page(path);
	page = service(path);
	line = line_now();
	handle = reader(path, 0);
	CHECK_INT(timepage_publish(page, &line), 0);
	CHECK_INT(bwtime_now_ns(handle, &before_ns), 0);
	timepage_close(page);
	CHECK_INT(port_timepage_create(path, TIMEPAGE_BYTES, &file), 0);
	image = file.writable;
	atomic_store(&image->version, TIMEPAGE_VERSION - 1);
	port_timepage_close(&file);
	page = service(path);
	line.base_utc_ns += INT64_C(50000000); /* what a reader would slew to, and not take for a step */
	CHECK_INT(timepage_publish(page, &line), 0);
	CHECK_INT(bwtime_now_ns(handle, &after_ns), 0);
	CHECK_INT(after_ns, before_ns);
	bwtime_close(handle);
	handle = reader(path, 0);
	CHECK_INT(bwtime_now_ns(handle, &new_ns), 0);
	CHECK_INT(new_ns, before_ns + INT64_C(50000000));
	bwtime_close(handle);
	timepage_close(page);
	remove_page(path);
}

/* Garbage under an attached reader: it is refused, or gives a time within its limits. */
static void test_garbage(void)
{
	struct random random = { 11 };
	struct timepage *page = service(path);
	struct timepage_line line = line_now();
	struct bwtime *handle = reader(path, BWTIME_TELL_STEPS);
	struct bwtime_stamp stamp;
	struct timepage_image *image;
	struct port_timepage file;
	int given = 0;

	CHECK_INT(timepage_publish(page, &line), 0);
	timepage_close(page);
	CHECK_INT(port_timepage_create(path, TIMEPAGE_BYTES, &file), 0);
	image = file.writable;
	for (int i = 0; i < 100000; i++) {
		int changes = (int)(random_bits(&random) % 4);

		line = line_now();
		line.publications = (uint64_t)i + 1;
		line.settled_utc_ns = line.base_utc_ns;
		timepage_line_write(&image->line, &line);
		for (int change = 0; change < changes; change++) {
			int word = (int)(random_bits(&random) % TIMEPAGE_LINE_WORDS);
			uint64_t value = random_bits(&random) >> random_bits(&random) % 64;

			atomic_store(&image->line.copies[0][word], value);
		}
		fake_ticks += random_bits(&random) >> (24 + random_bits(&random) % 40);
		if (bwtime_now(handle, &stamp) == 0) {
			uint64_t at = random_bits(&random);

			given++;
			CHECK(stamp.utc_ns > 0 && stamp.bound_ns > 0 && stamp.tai_utc_s >= 0 && stamp.tai_utc_s <= 1000);
			if (bwtime_from_ticks(handle, &at, 1, &stamp) == 0)
				CHECK(stamp.utc_ns > 0 && stamp.bound_ns > 0);
		}
	}
	CHECK(given > 10000);
	bwtime_close(handle);
	port_timepage_close(&file);
}

/* A page that somebody takes away under its service is made anew; who has the old one, and who comes, get the time all the while. */
static void test_taken_away(void)
{
	for (int with_lock = 0; with_lock < 2; with_lock++) {
		struct timepage *page = service(path), *other;
		struct timepage_line line = line_now();
		struct bwtime *handle = reader(path, 0), *newcomer;
		char lock[1024];
		int64_t ns;

		snprintf(lock, sizeof(lock), "%s.lock", path);
		CHECK_INT(timepage_publish(page, &line), 0);
		CHECK_INT(bwtime_now_ns(handle, &ns), 0);
		CHECK_INT(timepage_keep(page), 0);
		fake_ticks += SECOND_TICKS; /* readers look for a page at most four times a second */
		CHECK_INT(remove(path), 0);
		if (with_lock)
			CHECK_INT(remove(lock), 0);
		CHECK_INT(timepage_keep(page), 1);
		CHECK_INT(timepage_keep(page), 0);
		CHECK_INT(bwtime_now_ns(handle, &ns), 0);
		newcomer = reader(path, 0);
		CHECK_INT(bwtime_now_ns(newcomer, &ns), 0);
		line.state = TIMEPAGE_UNSYNCHRONISED;
		CHECK_INT(timepage_publish(page, &line), 0);
		CHECK_INT(bwtime_now_ns(handle, &ns), BWTIME_NO_SYNC);
		CHECK_INT(bwtime_now_ns(newcomer, &ns), BWTIME_NO_SYNC);
		CHECK_INT(timepage_create(path, fake_kind, 2000000000, &other), -EBUSY);
		bwtime_close(newcomer);
		bwtime_close(handle);
		timepage_close(page);
		remove_page(path);
	}
}

/* The place of a page that was taken away is another service's: it keeps it. */
static void test_place_of_another(void)
{
	struct timepage *page = service(path), *other;

	remove_page(path);
	other = service(path);
	CHECK_INT(timepage_keep(page), -EBUSY);
	CHECK_INT(timepage_keep(other), 0);
	timepage_close(page);
	timepage_close(other);
	remove_page(path);
}

int main(int argc, char **argv)
{
	path = argc > 1 ? argv[1] : "test_page.page";
	remove_page(path);
	test_products();
	test_figures();
	test_half_written();
	test_status();
	test_foreign();
	test_other_version();
	test_garbage();
	remove_page(path);
	if (PORT_MAPPED_FILES_GO) { /* else nobody can delete one */
		test_taken_away();
		test_place_of_another();
	}
	return check_result();
}
