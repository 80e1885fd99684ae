-- A mirror of logs: raw batches in order, from which rooms can be rebuilt. One row is one piece;
-- its columns repeat what is in it, for the eye.
CREATE TABLE waitroom.mirror (
    room   text NOT NULL,
    number bigint NOT NULL,
    head   bigint NOT NULL,
    piece  bytea NOT NULL,
    PRIMARY KEY (room, number)
);
