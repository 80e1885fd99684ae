-- What happened in rooms, in tables. Everything here follows from the logs and can be made anew.
-- Times are those of the room. `head` is the event's index in its room's log, counted from 1, so
-- that `room:head` names it for good.

-- One row for each room: how it is now, and how far the log is told here (`head`, `chain`). Events
-- up to `gap_to` were no longer kept when this was made.
CREATE TABLE waitroom.rooms (
    room            text PRIMARY KEY,
    head            bigint NOT NULL DEFAULT 0,
    chain           bytea,
    gap_to          bigint NOT NULL DEFAULT 0,
    title           text,
    target_url      text,
    max_active      bigint,
    rate_per_minute double precision,
    status          text NOT NULL DEFAULT 'open',
    made_at         timestamptz,
    changed_at      timestamptz
);

-- Everybody who ever had a place. `place` is the position it was given; `ended_from` says how far
-- somebody came: waiting, admitted or active.
CREATE TABLE waitroom.tickets (
    room       text NOT NULL,
    lane       smallint NOT NULL,
    number     bigint NOT NULL,
    id         uuid,
    joined_at  timestamptz,
    joined_by  bigint,
    place      bigint,
    status     text NOT NULL,
    waited_ms  bigint,
    ended_at   timestamptz,
    ended_from text,
    ending     text,
    PRIMARY KEY (room, lane, number)
);
CREATE INDEX tickets_by_id ON waitroom.tickets (id);
CREATE INDEX tickets_waiting ON waitroom.tickets (room) WHERE status = 'waiting';

CREATE TABLE waitroom.admissions (
    room      text NOT NULL,
    head      bigint NOT NULL,
    lane      smallint NOT NULL,
    number    bigint NOT NULL,
    at        timestamptz NOT NULL,
    why       text NOT NULL,
    waited_ms bigint NOT NULL,
    waiting   bigint NOT NULL,
    claim_by  timestamptz,
    PRIMARY KEY (room, head),
    UNIQUE (room, lane, number)
);
CREATE INDEX admissions_by_time ON waitroom.admissions (room, at);

CREATE TABLE waitroom.sessions (
    room       text NOT NULL,
    lane       smallint NOT NULL,
    number     bigint NOT NULL,
    started_at timestamptz,
    expires_at timestamptz,
    renewals   bigint NOT NULL DEFAULT 0,
    ended_at   timestamptz,
    ending     text,
    PRIMARY KEY (room, lane, number)
);

CREATE TABLE waitroom.events (
    room   text NOT NULL,
    head   bigint NOT NULL,
    at     timestamptz NOT NULL,
    kind   text NOT NULL,
    lane   smallint,
    number bigint,
    data   jsonb,
    PRIMARY KEY (room, head)
);
CREATE INDEX events_by_kind ON waitroom.events (room, kind, head)
    WHERE kind NOT IN ('joined', 'admitted', 'claimed', 'renewed', 'ended', 'released');

-- How long people waited until they were let in.
CREATE VIEW waitroom.waits AS
SELECT room, lane, count(*) AS admitted,
       percentile_disc(0.50) WITHIN GROUP (ORDER BY waited_ms) AS p50_ms,
       percentile_disc(0.90) WITHIN GROUP (ORDER BY waited_ms) AS p90_ms,
       percentile_disc(0.95) WITHIN GROUP (ORDER BY waited_ms) AS p95_ms,
       percentile_disc(0.99) WITHIN GROUP (ORDER BY waited_ms) AS p99_ms,
       max(waited_ms) AS longest_ms
FROM waitroom.admissions
GROUP BY room, lane;

-- The same by the minute in which they were let in.
CREATE VIEW waitroom.waits_by_minute AS
SELECT room, date_trunc('minute', at) AS minute, count(*) AS admitted,
       percentile_disc(0.50) WITHIN GROUP (ORDER BY waited_ms) AS p50_ms,
       percentile_disc(0.90) WITHIN GROUP (ORDER BY waited_ms) AS p90_ms,
       percentile_disc(0.99) WITHIN GROUP (ORDER BY waited_ms) AS p99_ms,
       max(waited_ms) AS longest_ms
FROM waitroom.admissions
GROUP BY room, date_trunc('minute', at);

-- How many of those who came got in, and how many of those came through. Who was moved to another
-- lane is counted there.
CREATE VIEW waitroom.conversion AS
SELECT t.room, count(*) AS joined, count(a.head) AS admitted, count(s.started_at) AS started,
       count(*) FILTER (WHERE t.status = 'completed') AS completed,
       count(a.head)::float8 / count(*) AS admitted_share,
       count(*) FILTER (WHERE t.status = 'completed')::float8 / nullif(count(a.head), 0)
           AS completed_share
FROM waitroom.tickets t
LEFT JOIN waitroom.admissions a USING (room, lane, number)
LEFT JOIN waitroom.sessions s USING (room, lane, number)
WHERE t.status <> 'moved'
GROUP BY t.room;

-- Who went away without being done: from where, and why.
CREATE VIEW waitroom.drop_off AS
SELECT room, ended_from AS stage, ending, count(*) AS tickets
FROM waitroom.tickets
WHERE ended_at IS NOT NULL AND status NOT IN ('completed', 'moved')
GROUP BY room, ended_from, ending;

-- Who was let in and did not come.
CREATE VIEW waitroom.no_shows AS
SELECT a.room, count(*) AS admitted,
       count(*) FILTER (WHERE t.ending = 'no_show') AS no_shows,
       count(*) FILTER (WHERE t.ending = 'no_show')::float8 / count(*) AS share
FROM waitroom.admissions a
JOIN waitroom.tickets t USING (room, lane, number)
GROUP BY a.room;

-- Admissions of each minute beside the pace that was set: the highest that was in force in that
-- minute. Admissions by hand are outside the pace.
CREATE VIEW waitroom.throughput AS
WITH limits AS (
    SELECT room, at AS since,
           coalesce(lead(at) OVER (PARTITION BY room ORDER BY head), 'infinity') AS until,
           (data ->> 'rate_per_minute')::float8 AS per_minute
    FROM waitroom.events
    WHERE kind = 'configured'
), minutes AS (
    SELECT room, date_trunc('minute', at) AS minute,
           count(*) FILTER (WHERE why <> 'manual') AS paced,
           count(*) FILTER (WHERE why = 'manual') AS by_hand
    FROM waitroom.admissions
    GROUP BY room, date_trunc('minute', at)
)
SELECT m.room, m.minute, m.paced, m.by_hand,
       (SELECT max(l.per_minute) FROM limits l
        WHERE l.room = m.room AND l.since < m.minute + interval '1 minute' AND l.until > m.minute)
           AS limit_per_minute
FROM minutes m;

-- Whether they were let in as they came: Spearman's rank correlation of the order of joining with
-- the order of admission. 1 is first come, first served; about 0 is what a draw aims at.
CREATE VIEW waitroom.fairness AS
WITH ranked AS (
    SELECT room, lane,
           rank() OVER (PARTITION BY room, lane ORDER BY number) AS came,
           rank() OVER (PARTITION BY room, lane ORDER BY head) AS went
    FROM waitroom.admissions
)
SELECT room, lane, count(*) AS admitted, corr(came, went) AS rank_correlation
FROM ranked
GROUP BY room, lane;
