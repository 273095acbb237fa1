-- +goose Up

-- The caches of the reach of applications are notified which keys change: the tenant
-- and the application or organization. More than a hundred keys at once are told
-- as one change of everything, an empty payload, which the triggers before these
-- sent for every change.
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

DROP TRIGGER reach ON applications;
CREATE TRIGGER reach_insert AFTER INSERT ON applications REFERENCING NEW TABLE AS changed
    EXECUTE FUNCTION notify_keys('application.reach', 'id');
CREATE TRIGGER reach_update AFTER UPDATE ON applications REFERENCING NEW TABLE AS changed
    EXECUTE FUNCTION notify_keys('application.reach', 'id');
CREATE TRIGGER reach_delete AFTER DELETE ON applications REFERENCING OLD TABLE AS changed
    EXECUTE FUNCTION notify_keys('application.reach', 'id');
CREATE TRIGGER reach_truncate AFTER TRUNCATE ON applications
    EXECUTE FUNCTION notify_keys('application.reach');

DROP TRIGGER reach ON organizations;
CREATE TRIGGER reach_insert AFTER INSERT ON organizations REFERENCING NEW TABLE AS changed
    EXECUTE FUNCTION notify_keys('application.reach', 'id');
CREATE TRIGGER reach_update AFTER UPDATE ON organizations REFERENCING NEW TABLE AS changed
    EXECUTE FUNCTION notify_keys('application.reach', 'id');
CREATE TRIGGER reach_delete AFTER DELETE ON organizations REFERENCING OLD TABLE AS changed
    EXECUTE FUNCTION notify_keys('application.reach', 'id');
CREATE TRIGGER reach_truncate AFTER TRUNCATE ON organizations
    EXECUTE FUNCTION notify_keys('application.reach');

DROP TRIGGER reach ON account_store_mappings;
CREATE TRIGGER reach_insert AFTER INSERT ON account_store_mappings REFERENCING NEW TABLE AS changed
    EXECUTE FUNCTION notify_keys('application.reach', 'owner_id');
CREATE TRIGGER reach_update AFTER UPDATE ON account_store_mappings REFERENCING NEW TABLE AS changed
    EXECUTE FUNCTION notify_keys('application.reach', 'owner_id');
CREATE TRIGGER reach_delete AFTER DELETE ON account_store_mappings REFERENCING OLD TABLE AS changed
    EXECUTE FUNCTION notify_keys('application.reach', 'owner_id');
CREATE TRIGGER reach_truncate AFTER TRUNCATE ON account_store_mappings
    EXECUTE FUNCTION notify_keys('application.reach');

DROP TRIGGER reach ON account_linking_policies;
CREATE TRIGGER reach_insert AFTER INSERT ON account_linking_policies REFERENCING NEW TABLE AS changed
    EXECUTE FUNCTION notify_keys('application.reach', 'owner_id');
CREATE TRIGGER reach_update AFTER UPDATE ON account_linking_policies REFERENCING NEW TABLE AS changed
    EXECUTE FUNCTION notify_keys('application.reach', 'owner_id');
CREATE TRIGGER reach_delete AFTER DELETE ON account_linking_policies REFERENCING OLD TABLE AS changed
    EXECUTE FUNCTION notify_keys('application.reach', 'owner_id');
CREATE TRIGGER reach_truncate AFTER TRUNCATE ON account_linking_policies
    EXECUTE FUNCTION notify_keys('application.reach');

DROP FUNCTION notify_reach();
