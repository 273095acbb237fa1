-- +goose Up

-- How far the previous release has read each partition. Offsets are committed to
-- Kafka now; the table is where a consumer group begins that has committed none.
CREATE TABLE read_partitions (
    topic text NOT NULL,
    partition integer NOT NULL,
    owner bigint NOT NULL,
    next_offset bigint NOT NULL,
    PRIMARY KEY (topic, partition)
);
