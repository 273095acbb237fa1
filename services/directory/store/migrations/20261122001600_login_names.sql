-- +goose Up

-- Every name that leads a login to an account of a directory: its user name and
-- its email, in their normal form. The look-up of a login reads this table, and
-- its primary key keeps a name from a second account.
CREATE TABLE login_names (
    tenant_id uuid NOT NULL,
    directory_id uuid NOT NULL,
    name text COLLATE "C" NOT NULL,
    account_id uuid NOT NULL,
    PRIMARY KEY (tenant_id, directory_id, name)
);

-- The rows follow from those of accounts, also from what the previous release
-- writes. New names come before former ones go, and in their order, so that two
-- transactions that exchange names do not wait for each other.
-- +goose StatementBegin
CREATE FUNCTION keep_login_names() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'DELETE' THEN
        INSERT INTO login_names (tenant_id, directory_id, name, account_id)
        SELECT NEW.tenant_id, NEW.directory_id, added.name, NEW.id FROM (
            SELECT unnest(ARRAY[NEW.username_folded, NEW.email_folded]) EXCEPT SELECT unnest(ARRAY[OLD.username_folded, OLD.email_folded])
        ) AS added (name) ORDER BY added.name;
    END IF;
    IF TG_OP <> 'INSERT' THEN
        DELETE FROM login_names WHERE tenant_id = OLD.tenant_id AND directory_id = OLD.directory_id AND account_id = OLD.id
            AND name IN (OLD.username_folded, OLD.email_folded)
            AND (TG_OP = 'DELETE' OR name NOT IN (NEW.username_folded, NEW.email_folded));
        -- An account from before this table may have waited for this user name,
        -- which is its email.
        INSERT INTO login_names (tenant_id, directory_id, name, account_id)
        SELECT tenant_id, directory_id, email_folded, id FROM accounts
        WHERE tenant_id = OLD.tenant_id AND directory_id = OLD.directory_id AND email_folded = OLD.username_folded
        ON CONFLICT DO NOTHING;
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd

-- From here to the end of the migration others read accounts and do not write.
CREATE TRIGGER login_names_added AFTER INSERT OR DELETE ON accounts FOR EACH ROW EXECUTE FUNCTION keep_login_names();
CREATE TRIGGER login_names_changed AFTER UPDATE OF username_folded, email_folded ON accounts FOR EACH ROW
    WHEN (OLD.username_folded <> NEW.username_folded OR OLD.email_folded <> NEW.email_folded) EXECUTE FUNCTION keep_login_names();

INSERT INTO login_names (tenant_id, directory_id, name, account_id) SELECT tenant_id, directory_id, username_folded, id FROM accounts;

-- Where the email of one account is the user name of another, the name keeps
-- leading to the latter.
-- +goose StatementBegin
DO $$
DECLARE clash record;
BEGIN
    INSERT INTO login_names (tenant_id, directory_id, name, account_id)
    SELECT tenant_id, directory_id, email_folded, id FROM accounts WHERE email_folded <> username_folded
    ON CONFLICT DO NOTHING;
    FOR clash IN
        SELECT a.tenant_id, a.directory_id, a.id, n.account_id FROM accounts a
        JOIN login_names n ON n.tenant_id = a.tenant_id AND n.directory_id = a.directory_id AND n.name = a.email_folded AND n.account_id <> a.id
    LOOP
        RAISE WARNING 'the email of the account % is the user name of the account %, to which it leads a login; tenant %, directory %',
            clash.id, clash.account_id, clash.tenant_id, clash.directory_id;
    END LOOP;
END $$;
-- +goose StatementEnd
