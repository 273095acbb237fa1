-- +goose Up

-- Caches of policies are notified of every change.
-- +goose StatementBegin
CREATE FUNCTION notify_policies() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NOTIFY "oauth.policies";
    RETURN NULL;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER policies AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON oauth_policies EXECUTE FUNCTION notify_policies();
