# SPDX-License-Identifier: Apache-2.0
"""Benchmarks: what is fast, exact or lost, side by side in one run (docs/benchmarks.md).

    python -m bench NAME [OPTION...]    # bench/FOLDER/bench_NAME.py; without a name: all names

lab         what they share: turns, results, namespaces, compilers, runs that are killed
traffic     bw-traffic: schedule, overhead, scale, memory
userstack   the user-mode stack and ways for packets
clocks      the time service and the tools that compare clocks
analysis    edges in samples, stability of clocks
verdicts    how often a verdict is wrong, and what `verify` notices
dashboards  reports, delivery, dashboards, trends, the adviser
targets     whole qualifications, restoring a target, power cuts
"""
