-- +goose Up

-- How often logins failed since a window began. The login and the address are
-- digests under a key that is not here; one of them is empty where the tally is
-- that of the other alone. succeeded_at makes an address known for a login.
CREATE TABLE login_tallies (
    tenant_id uuid NOT NULL,
    login text COLLATE "C" NOT NULL,
    address text COLLATE "C" NOT NULL,
    failures integer NOT NULL,
    most integer NOT NULL,
    ends_at timestamptz NOT NULL,
    succeeded_at timestamptz,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, login, address)
);
CREATE INDEX login_tallies_succeeded ON login_tallies (tenant_id, address, succeeded_at) WHERE succeeded_at IS NOT NULL;
CREATE INDEX login_tallies_age ON login_tallies (expires_at);
