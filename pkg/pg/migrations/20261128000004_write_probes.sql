-- +goose Up
-- A row for each process that has written within a day: pkg/pg/writeprobe.go.
CREATE TABLE write_probes (
    process text PRIMARY KEY,
    written_at timestamptz NOT NULL
);

-- In PL/pgSQL, because a server whose procedural language cannot be loaded takes plain statements all the same.
-- +goose StatementBegin
CREATE FUNCTION probe_write(writer text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM write_probes WHERE written_at < clock_timestamp() - interval '1 day';
    INSERT INTO write_probes (process, written_at) VALUES (writer, clock_timestamp())
    ON CONFLICT (process) DO UPDATE SET written_at = excluded.written_at;
END
$$;
-- +goose StatementEnd
