-- SPDX-License-Identifier: Apache-2.0
-- The local store, version 1 (PRAGMA user_version). Meaning of tags and fields: docs/store.md.
CREATE TABLE run (
    run_id     TEXT PRIMARY KEY,
    time_ns    INTEGER NOT NULL,           -- start of the run, ns since 1970 UTC
    bench      TEXT NOT NULL,
    profile    TEXT NOT NULL,
    branch     TEXT NOT NULL,
    "commit"   TEXT,
    simulated  INTEGER NOT NULL,
    outcome    TEXT NOT NULL,
    facts      TEXT NOT NULL,              -- JSON: what the bench key is made of
    source     TEXT NOT NULL               -- run, rtc-testbench
) STRICT;

CREATE TABLE point (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id      TEXT NOT NULL REFERENCES run (run_id),
    measurement TEXT NOT NULL,
    series      TEXT NOT NULL,             -- measurement and tags as line protocol: with time_ns the point's identity
    time_ns     INTEGER NOT NULL,
    tags        TEXT NOT NULL,             -- JSON object of texts
    fields      TEXT NOT NULL,             -- JSON object
    line        TEXT NOT NULL,             -- what is sent
    revision    INTEGER NOT NULL DEFAULT 1,-- counts up when the line changes
    state       TEXT NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'delivered', 'rejected')),
    reason      TEXT NOT NULL DEFAULT '',  -- the server's, of a rejected point
    acknowledged_ns INTEGER,               -- when the server took it; ns since 1970 UTC
    UNIQUE (series, time_ns)
) STRICT;

CREATE INDEX point_waiting ON point (id) WHERE state = 'waiting';
CREATE INDEX point_rejected ON point (id) WHERE state = 'rejected';
CREATE INDEX point_delivered ON point (time_ns, id, acknowledged_ns) WHERE state = 'delivered';
CREATE INDEX point_history ON point (measurement, time_ns);
CREATE INDEX point_of_run ON point (run_id);
CREATE INDEX run_time ON run (bench, time_ns);
