-- +goose Up

-- The language of the user, a BCP 47 tag in its canonical form, in which mails are sent.
ALTER TABLE accounts ADD COLUMN locale text;
