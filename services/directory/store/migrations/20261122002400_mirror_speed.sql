-- +goose Up

-- The login names of accounts that come together are written together: a sync
-- brings thousands. In their order, as keep_login_names has it.
-- +goose StatementBegin
CREATE FUNCTION add_login_names() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO login_names (tenant_id, directory_id, name, account_id)
    SELECT tenant_id, directory_id, username_folded, id FROM added
    UNION SELECT tenant_id, directory_id, email_folded, id FROM added
    ORDER BY 3;
    RETURN NULL;
END $$;
-- +goose StatementEnd
DROP TRIGGER login_names_added ON accounts;
CREATE TRIGGER login_names_inserted AFTER INSERT ON accounts REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION add_login_names();
CREATE TRIGGER login_names_deleted AFTER DELETE ON accounts FOR EACH ROW EXECUTE FUNCTION keep_login_names();

-- What was said of an account goes with it, without a check of every new row.
-- +goose StatementBegin
CREATE FUNCTION drop_mirrored_accounts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM mirrored_accounts m USING gone WHERE m.tenant_id = gone.tenant_id AND m.account_id = gone.id;
    RETURN NULL;
END $$;
-- +goose StatementEnd
ALTER TABLE mirrored_accounts DROP CONSTRAINT mirrored_accounts_tenant_id_account_id_fkey;
CREATE TRIGGER mirrored_accounts_deleted AFTER DELETE ON accounts REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION drop_mirrored_accounts();
