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
