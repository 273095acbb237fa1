-- +goose Up

-- What the pages of mailed links show: the application through which the mail was caused, if any. A
-- verification keeps its digest after its use, with no end (verification_expires_at), so that its link
-- still leads to the account; a password reset keeps its row for a while.
ALTER TABLE accounts ADD COLUMN verification_application_id uuid;
