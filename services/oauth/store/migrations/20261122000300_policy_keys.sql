-- +goose Up

-- The caches of policies are notified which keys change: the tenant and the
-- application. More than a hundred keys at once are told as one change of
-- everything, an empty payload, which the trigger before these sent for every
-- change.
-- +goose StatementBegin
CREATE FUNCTION notify_keys() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    keys text[];
BEGIN
    IF TG_OP = 'TRUNCATE' THEN
        PERFORM pg_notify(TG_ARGV[0], '');
        RETURN NULL;
    END IF;
    EXECUTE format('SELECT array_agg(key) FROM
        (SELECT DISTINCT tenant_id::text || '' '' || %I::text AS key FROM changed LIMIT 101) k', TG_ARGV[1]) INTO keys;
    IF cardinality(keys) > 100 THEN
        keys := '{""}';
    END IF;
    PERFORM pg_notify(TG_ARGV[0], key) FROM unnest(keys) AS key;
    RETURN NULL;
END
$$;
-- +goose StatementEnd

DROP TRIGGER policies ON oauth_policies;
CREATE TRIGGER policies_insert AFTER INSERT ON oauth_policies REFERENCING NEW TABLE AS changed
    EXECUTE FUNCTION notify_keys('oauth.policies', 'application_id');
CREATE TRIGGER policies_update AFTER UPDATE ON oauth_policies REFERENCING NEW TABLE AS changed
    EXECUTE FUNCTION notify_keys('oauth.policies', 'application_id');
CREATE TRIGGER policies_delete AFTER DELETE ON oauth_policies REFERENCING OLD TABLE AS changed
    EXECUTE FUNCTION notify_keys('oauth.policies', 'application_id');
CREATE TRIGGER policies_truncate AFTER TRUNCATE ON oauth_policies EXECUTE FUNCTION notify_keys('oauth.policies');
DROP FUNCTION notify_policies();
