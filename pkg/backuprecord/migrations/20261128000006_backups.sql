-- +goose Up

-- When the last backup of the deployment was complete: one row (docs/backup.md).
CREATE TABLE backups (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    completed_at timestamptz NOT NULL
);
