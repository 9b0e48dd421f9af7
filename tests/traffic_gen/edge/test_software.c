/* SPDX-License-Identifier: Apache-2.0 */
/* How early software is awake for an edge: longer after each late wake-up, and never for more than a quarter of the period. */
#include "check.h"
#include "edge/method/software_edge.h"

static int64_t longest_lead_ns(int64_t period_ns)
{
	int64_t lead_ns = software_edge_lead_ns(period_ns);

	for (int late = 0; late < 10; late++) {
		int64_t longer_ns = software_edge_longer_lead_ns(lead_ns, period_ns);

		CHECK(longer_ns >= lead_ns);
		CHECK(longer_ns <= 2 * lead_ns);
		lead_ns = longer_ns;
	}
	return lead_ns;
}

int main(void)
{
	CHECK_INT(software_edge_lead_ns(20000000), SOFTWARE_EDGE_LEAD_NS);
	CHECK_INT(software_edge_lead_ns(500000), 125000);
	CHECK_INT(software_edge_longer_lead_ns(SOFTWARE_EDGE_LEAD_NS, 20000000), 2 * SOFTWARE_EDGE_LEAD_NS);
	CHECK_INT(longest_lead_ns(1000000000), SOFTWARE_EDGE_LEAD_MAX_NS);
	CHECK_INT(longest_lead_ns(4000000), 1000000);
	CHECK_INT(longest_lead_ns(500000), 125000);
	return check_result();
}
