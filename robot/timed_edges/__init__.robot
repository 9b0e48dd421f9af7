*** Comments ***
# SPDX-License-Identifier: Apache-2.0


*** Settings ***
Documentation     Edges at the right moment, seen from outside. The suites of this folder share one bench, which is
...               built once; a suite that is run alone opens it by itself.

Resource          timed_edges.resource

Suite Setup       Open The Bench And Its Edges    bench
Suite Teardown    Close The Bench And Its Edges
