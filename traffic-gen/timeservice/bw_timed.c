/* SPDX-License-Identifier: Apache-2.0 */
/* bw-timed - the time service; on Windows targets/windows/timeservice starts it. */
#include "timeservice/timed.h"

int main(int argc, char **argv)
{
	return timed_main(argc, argv);
}
