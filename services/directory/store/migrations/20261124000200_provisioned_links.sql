-- +goose Up

-- Whether a login made the link together with the copy at its right end: a password
-- reset may end such a link, and leaves all others.
ALTER TABLE account_links ADD COLUMN provisioned boolean NOT NULL DEFAULT false;
