-- A session whose run is under way has its whole head in its row as it was at `version`. How far the run has
-- come since (core.progress) is in the row of steps that ends the session's range, with the id of version
-- 2^32 - 1: data is the progress (empty: none), checksum goes on from that of the newest step, first_seq is when
-- the lease ends, run_id is its owner as long as nothing is posted.
INSERT INTO steps SELECT key * 4294967296 + 4294967295, 0, NULL, chain, x'' FROM sessions
    WHERE lease_owner IS NOT NULL;

-- No row comes after this one: when the last row of a table grows, SQLite leaves a hole in the page it was on.
INSERT INTO steps VALUES (9223372032559808512, 0, NULL, 0, x'');

-- How a run's next step is written: in one statement that changes nothing unless all is as the run left it.
CREATE VIEW advances AS SELECT *, '' AS owner, x'' AS progress, 0 AS seal, 0 AS until FROM steps;
CREATE TRIGGER advance INSTEAD OF INSERT ON advances BEGIN
    UPDATE steps SET first_seq = NEW.until, checksum = NEW.seal, data = NEW.progress
        WHERE id = NEW.id | 4294967295 AND run_id = NEW.owner;
    SELECT RAISE(ABORT, '') WHERE changes() = 0;
    INSERT INTO steps VALUES (NEW.id, NEW.first_seq, NULL, NEW.checksum, NEW.data);
END;
