-- SPDX-License-Identifier: Apache-2.0
-- The local store, version 2 (PRAGMA user_version). Meaning of tags and fields: docs/store.md.
CREATE TABLE run (
    number     INTEGER PRIMARY KEY,        -- in the order in which they were stored
    run_id     TEXT NOT NULL UNIQUE,
    time_ns    INTEGER NOT NULL,           -- start of the run, ns since 1970 UTC
    bench      TEXT NOT NULL,
    profile    TEXT NOT NULL,
    branch     TEXT NOT NULL,
    "commit"   TEXT,
    simulated  INTEGER NOT NULL,
    outcome    TEXT NOT NULL,
    facts      TEXT NOT NULL,              -- JSON: what the bench key is made of
    source     TEXT NOT NULL,              -- run, rtc-testbench
    content    BLOB NOT NULL DEFAULT x'',  -- fields of its points, see content.py
    seal       BLOB NOT NULL DEFAULT x''   -- hash of its points, see seal.py
) STRICT;

CREATE TABLE series (
    id          INTEGER PRIMARY KEY,
    name        TEXT NOT NULL UNIQUE,      -- measurement and tags as line protocol
    measurement TEXT NOT NULL,
    tags        TEXT NOT NULL              -- JSON object of texts, sorted
) STRICT;

CREATE TABLE point (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    run         INTEGER NOT NULL REFERENCES run (number),
    series      INTEGER NOT NULL REFERENCES series (id),
    time_ns     INTEGER NOT NULL,          -- with the series the point's identity
    revision    INTEGER NOT NULL DEFAULT 1,-- counts up when the line changes
    state       TEXT NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'delivered', 'rejected')),
    reason      TEXT NOT NULL DEFAULT '',  -- the server's, of a rejected point
    acknowledged_ns INTEGER,               -- when the server took it; ns since 1970 UTC
    UNIQUE (time_ns, series)
) STRICT;

CREATE INDEX point_waiting ON point (id, time_ns) WHERE state = 'waiting';
CREATE INDEX point_rejected ON point (id) WHERE state = 'rejected';
CREATE INDEX point_delivered ON point (time_ns, id, acknowledged_ns) WHERE state = 'delivered';
CREATE INDEX point_of_run ON point (run, series, time_ns);
CREATE INDEX series_measurement ON series (measurement);
CREATE INDEX run_time ON run (bench, time_ns);
