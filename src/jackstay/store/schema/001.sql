-- A session as it is now. Small columns stand before the head, so that lists need not read heads.
CREATE TABLE sessions (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    version INTEGER NOT NULL,          -- how many steps were committed
    chain INTEGER NOT NULL,            -- checksum of the last step, which goes on from that of the one before
    run_id TEXT NOT NULL,
    lease_owner TEXT,                  -- who runs it, and until when (epoch seconds)
    lease_until REAL,
    created REAL NOT NULL,             -- epoch seconds, like all times here
    updated REAL NOT NULL,
    outcome TEXT,
    phase TEXT NOT NULL,
    turn INTEGER NOT NULL,
    waiting INTEGER NOT NULL,          -- how many calls waited for a person at the last step
    waiting_since REAL,
    title TEXT NOT NULL,
    usage BLOB NOT NULL,               -- JSON array of the counts; empty: none
    checksum INTEGER NOT NULL,         -- of head, going on from chain
    head BLOB NOT NULL                 -- the state without its messages
);
CREATE INDEX sessions_waiting ON sessions (waiting_since) WHERE waiting_since IS NOT NULL;

-- What a commit added, in one row: its events, its messages, its replacements of earlier messages.
-- id is the session's key times 2^32 plus the version; a damaged step that was set aside has it negated.
CREATE TABLE steps (
    id INTEGER PRIMARY KEY,
    first_seq INTEGER NOT NULL,        -- the number of its first event
    run_id TEXT,                       -- NULL: the same run as the step before
    checksum INTEGER NOT NULL,
    data BLOB NOT NULL
);

-- What was posted and no step has taken in yet.
CREATE TABLE inbox (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    session INTEGER NOT NULL,
    key TEXT NOT NULL,
    item BLOB NOT NULL,
    UNIQUE (session, key)
);

-- Whole texts behind shortened observations.
CREATE TABLE artifacts (
    session INTEGER NOT NULL,
    call_id TEXT NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (session, call_id)
) WITHOUT ROWID;
