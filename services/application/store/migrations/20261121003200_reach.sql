-- +goose Up

-- Caches of the reach of applications are notified of every change of a table
-- that it is read from.
-- +goose StatementBegin
CREATE FUNCTION notify_reach() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NOTIFY "application.reach";
    RETURN NULL;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER reach AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON applications EXECUTE FUNCTION notify_reach();
CREATE TRIGGER reach AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON account_store_mappings EXECUTE FUNCTION notify_reach();
CREATE TRIGGER reach AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON organizations EXECUTE FUNCTION notify_reach();
CREATE TRIGGER reach AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON account_linking_policies EXECUTE FUNCTION notify_reach();
