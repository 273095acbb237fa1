-- +goose Up

-- The cache of providers is notified which directories change: the tenant and the
-- directory. More than a hundred at once are told as one change of everything, an
-- empty payload. The creation policy and the schema of a directory that has a provider
-- cannot be changed.
-- +goose StatementBegin
CREATE FUNCTION notify_directories() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    keys text[];
BEGIN
    IF TG_OP = 'TRUNCATE' THEN
        PERFORM pg_notify('directory.providers', '');
        RETURN NULL;
    END IF;
    EXECUTE format('SELECT array_agg(key) FROM
        (SELECT DISTINCT tenant_id::text || '' '' || %I::text AS key FROM changed LIMIT 101) k', TG_ARGV[0]) INTO keys;
    IF cardinality(keys) > 100 THEN
        keys := '{""}';
    END IF;
    PERFORM pg_notify('directory.providers', key) FROM unnest(keys) AS key;
    RETURN NULL;
END
$$;
-- +goose StatementEnd

CREATE TRIGGER provider_insert AFTER INSERT ON directories REFERENCING NEW TABLE AS changed
    EXECUTE FUNCTION notify_directories('id');
CREATE TRIGGER provider_update AFTER UPDATE ON directories REFERENCING NEW TABLE AS changed
    EXECUTE FUNCTION notify_directories('id');
CREATE TRIGGER provider_delete AFTER DELETE ON directories REFERENCING OLD TABLE AS changed
    EXECUTE FUNCTION notify_directories('id');
CREATE TRIGGER provider_truncate AFTER TRUNCATE ON directories EXECUTE FUNCTION notify_directories();

CREATE TRIGGER provider_insert AFTER INSERT ON providers REFERENCING NEW TABLE AS changed
    EXECUTE FUNCTION notify_directories('directory_id');
CREATE TRIGGER provider_update AFTER UPDATE ON providers REFERENCING NEW TABLE AS changed
    EXECUTE FUNCTION notify_directories('directory_id');
CREATE TRIGGER provider_delete AFTER DELETE ON providers REFERENCING OLD TABLE AS changed
    EXECUTE FUNCTION notify_directories('directory_id');
CREATE TRIGGER provider_truncate AFTER TRUNCATE ON providers EXECUTE FUNCTION notify_directories();

CREATE TRIGGER provider_insert AFTER INSERT ON mapping_rules REFERENCING NEW TABLE AS changed
    EXECUTE FUNCTION notify_directories('directory_id');
CREATE TRIGGER provider_update AFTER UPDATE ON mapping_rules REFERENCING NEW TABLE AS changed
    EXECUTE FUNCTION notify_directories('directory_id');
CREATE TRIGGER provider_delete AFTER DELETE ON mapping_rules REFERENCING OLD TABLE AS changed
    EXECUTE FUNCTION notify_directories('directory_id');
CREATE TRIGGER provider_truncate AFTER TRUNCATE ON mapping_rules EXECUTE FUNCTION notify_directories();

CREATE TRIGGER provider_insert AFTER INSERT ON saml_service_providers REFERENCING NEW TABLE AS changed
    EXECUTE FUNCTION notify_directories('directory_id');
CREATE TRIGGER provider_update AFTER UPDATE ON saml_service_providers REFERENCING NEW TABLE AS changed
    EXECUTE FUNCTION notify_directories('directory_id');
CREATE TRIGGER provider_delete AFTER DELETE ON saml_service_providers REFERENCING OLD TABLE AS changed
    EXECUTE FUNCTION notify_directories('directory_id');
CREATE TRIGGER provider_truncate AFTER TRUNCATE ON saml_service_providers EXECUTE FUNCTION notify_directories();
