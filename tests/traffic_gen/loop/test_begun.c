/* SPDX-License-Identifier: Apache-2.0 */
/** Which pictures may be answered: those that have begun, as long as that is known. */
#include "../check.h"
#include "loop/begun.h"

static struct begun begun;

static void want(uint32_t number, const char *reason)
{
	const char *found = begun_refuse(&begun, number);

	CHECK_TEXT(found ? found : "taken", reason);
}

int main(void)
{
	static const char unsent[] = "answers a picture that was not sent", old[] = "answers a picture that is too old to be known";

	want(0, unsent);
	want(UINT32_MAX, unsent);
	begun_add(&begun, 0);
	begun_add(&begun, 3);
	want(0, "taken");
	want(1, unsent);
	want(3, "taken");
	want(BEGUN_KEPT, unsent);
	want(BEGUN_KEPT + 3, unsent);
	begun_add(&begun, 5 * BEGUN_KEPT + 3);
	want(3, old);
	want(4 * BEGUN_KEPT + 3, old);
	want(5 * BEGUN_KEPT + 3, "taken");
	want(6 * BEGUN_KEPT + 3, unsent);
	want(0, "taken");
	begun_add(&begun, UINT32_MAX - 1);
	want(UINT32_MAX - 1, "taken");
	want(UINT32_MAX, unsent);
	return check_result();
}
