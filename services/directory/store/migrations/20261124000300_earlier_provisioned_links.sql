-- +goose Up

-- A login made a copy and its link in one transaction, with one time for both. This is
-- a migration of its own so that logins do not wait for it: it locks only those links.
UPDATE account_links l SET provisioned = true FROM accounts a
WHERE a.tenant_id = l.tenant_id AND a.id = l.right_account_id AND a.created_at = l.created_at;
