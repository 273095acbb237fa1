-- +goose Up

-- The cache of what says whether an account may act is notified which accounts and
-- directories change: the tenant and the id. More than a hundred that are deleted at once
-- are told as one change of everything, an empty payload.
-- +goose StatementBegin
CREATE FUNCTION notify_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('directory.access', new.tenant_id::text || ' ' || new.id::text);
    RETURN NULL;
END
$$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE FUNCTION notify_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    keys text[];
BEGIN
    SELECT array_agg(key) INTO keys FROM (SELECT tenant_id::text || ' ' || id::text AS key FROM changed LIMIT 101) k;
    IF cardinality(keys) > 100 THEN
        keys := '{""}';
    END IF;
    PERFORM pg_notify('directory.access', key) FROM unnest(keys) AS key;
    RETURN NULL;
END
$$;
-- +goose StatementEnd

CREATE TRIGGER access_update AFTER UPDATE ON accounts FOR EACH ROW
    WHEN (old.status IS DISTINCT FROM new.status OR old.password_modified_at IS DISTINCT FROM new.password_modified_at
        OR old.directory_id IS DISTINCT FROM new.directory_id)
    EXECUTE FUNCTION notify_changed();
CREATE TRIGGER access_delete AFTER DELETE ON accounts REFERENCING OLD TABLE AS changed
    EXECUTE FUNCTION notify_deleted();
CREATE TRIGGER access_update AFTER UPDATE ON directories FOR EACH ROW
    WHEN (old.status IS DISTINCT FROM new.status)
    EXECUTE FUNCTION notify_changed();
CREATE TRIGGER access_delete AFTER DELETE ON directories REFERENCING OLD TABLE AS changed
    EXECUTE FUNCTION notify_deleted();
