-- +goose Up

-- The counters of the login throttle. The view under the former name is for
-- processes of the previous release that run beside this one.
ALTER TABLE login_tallies RENAME TO login_counters;
ALTER TABLE login_counters RENAME COLUMN most TO failure_limit;
ALTER INDEX login_tallies_pkey RENAME TO login_counters_pkey;
ALTER INDEX login_tallies_succeeded RENAME TO login_counters_succeeded;
ALTER INDEX login_tallies_age RENAME TO login_counters_expired;
CREATE VIEW login_tallies AS
    SELECT tenant_id, login, address, failures, failure_limit AS most, ends_at, succeeded_at, expires_at FROM login_counters;
