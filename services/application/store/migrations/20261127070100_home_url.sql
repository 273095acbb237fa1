-- +goose Up

-- Where users of the application are led from the pages of mails and of errors; NULL: to the origin of its
-- default callback.
ALTER TABLE applications ADD COLUMN home_url text;
