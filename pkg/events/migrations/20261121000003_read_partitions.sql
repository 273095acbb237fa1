-- +goose Up

-- How far this service has read each partition of the topics that it consumes:
-- one row for all tenants, whose events a partition mixes. next_offset moves on
-- in the transaction of an event's effect, and -2 is the first there is. owner
-- counts the processes that have read the partition: only the last of them may
-- move it on.
CREATE TABLE read_partitions (
    topic text NOT NULL,
    partition integer NOT NULL,
    owner bigint NOT NULL,
    next_offset bigint NOT NULL,
    PRIMARY KEY (topic, partition)
);
