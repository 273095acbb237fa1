-- +goose Up

-- SHA-256 of the password reset token that the pages of the flow have used: they may use one.
ALTER TABLE login_flows ADD COLUMN reset_token bytea;
