# SPDX-License-Identifier: Apache-2.0
"""A run judged a second time, from its raw evidence, by code that shares nothing with what wrote it.

Hashes say that nothing has changed since they were made; they say nothing of what was changed and hashed
anew. This package reads JSON and TOML as they lie in the folder, and works out by the documents alone
(docs/latency.md, docs/reports.md, docs/native-tools.md) what the records have to say.
"""
