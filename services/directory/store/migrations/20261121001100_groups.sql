-- +goose Up

-- Names and descriptions compare by their normal form. A description may be too
-- long for an entry of a B-tree, so that the column has no index.
CREATE TABLE groups (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    directory_id uuid NOT NULL,
    name text NOT NULL,
    name_folded text COLLATE "C" NOT NULL,
    description text,
    description_folded text COLLATE "C",
    status text NOT NULL,
    created_at timestamptz NOT NULL,
    modified_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, directory_id, name_folded),
    FOREIGN KEY (tenant_id, directory_id) REFERENCES directories ON DELETE CASCADE
);
CREATE INDEX groups_of_directory ON groups (directory_id, id) INCLUDE (tenant_id);
CREATE INDEX groups_by_status ON groups (directory_id, status, id) INCLUDE (tenant_id);
CREATE INDEX groups_by_creation ON groups (directory_id, created_at, id) INCLUDE (tenant_id);
CREATE INDEX groups_by_change ON groups (directory_id, modified_at, id) INCLUDE (tenant_id);
CREATE INDEX groups_of_tenant_by_name ON groups (tenant_id, name_folded, id);

-- A membership is never changed: it has one time.
CREATE TABLE group_memberships (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    directory_id uuid NOT NULL,
    group_id uuid NOT NULL,
    account_id uuid NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, group_id, account_id),
    FOREIGN KEY (tenant_id, group_id) REFERENCES groups ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, account_id) REFERENCES accounts ON DELETE CASCADE
);
CREATE INDEX group_memberships_of_account ON group_memberships (tenant_id, account_id, group_id);
CREATE INDEX group_memberships_of_group ON group_memberships (tenant_id, group_id, id);
CREATE INDEX group_memberships_by_creation ON group_memberships (tenant_id, group_id, created_at, id);

-- Left and right carry no meaning, and a link is never changed.
CREATE TABLE account_links (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    left_account_id uuid NOT NULL,
    right_account_id uuid NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, left_account_id, right_account_id),
    FOREIGN KEY (tenant_id, left_account_id) REFERENCES accounts ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, right_account_id) REFERENCES accounts ON DELETE CASCADE
);
CREATE INDEX account_links_of_right ON account_links (tenant_id, right_account_id);
