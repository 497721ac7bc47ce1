-- A session whose run is under way has its whole head in its row as it was at `version`; how far the run has
-- come since (core.progress) stands with its newest step, and with no other.
ALTER TABLE steps ADD COLUMN progress BLOB;           -- NULL: the row of the session has it all
ALTER TABLE steps ADD COLUMN progress_checksum INTEGER;  -- going on from checksum

-- How a run's next step is written: in one statement that changes nothing unless all is as the run left it.
CREATE VIEW advances AS
    SELECT id, first_seq, checksum, data, progress, progress_checksum, 0 AS session, '' AS lease_owner FROM steps;
CREATE TRIGGER advance INSTEAD OF INSERT ON advances BEGIN
    SELECT RAISE(ABORT, 'not as it was left')
        WHERE NOT EXISTS (SELECT 1 FROM sessions WHERE key = NEW.session AND lease_owner = NEW.lease_owner)
        OR EXISTS (SELECT 1 FROM inbox WHERE session = NEW.session);
    UPDATE steps SET progress = NULL, progress_checksum = NULL WHERE id = NEW.id - 1;
    INSERT INTO steps (id, first_seq, checksum, data, progress, progress_checksum)
        VALUES (NEW.id, NEW.first_seq, NEW.checksum, NEW.data, NEW.progress, NEW.progress_checksum);
END;
