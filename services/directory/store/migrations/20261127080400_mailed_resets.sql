-- +goose Up

-- Whether the token was sent by mail and shown to nobody else: its use proves that the mailbox is the user's.
ALTER TABLE password_resets ADD COLUMN mailed boolean NOT NULL DEFAULT false;
