package store

import (
	"cmp"
	"context"
	"slices"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
)

// The table login_names has every name that leads a login to an account of a directory: its user name
// and its email, in their normal form. Its primary key keeps a name from a second account. Each
// statement that inserts accounts, renames them or deletes them has one here that writes their names.

// insertLoginNames inserts the login names of new accounts, of which there may be many.
func (tx *Tx) insertLoginNames(ctx context.Context, accounts []directoryapi.Account) error {
	type loginName struct {
		name string
		of   directoryapi.Account
	}
	var names []loginName
	for _, a := range accounts {
		username, email := field.LoginName(a.Username), field.LoginName(a.Email)
		names = append(names, loginName{username, a})
		if email != username {
			names = append(names, loginName{email, a})
		}
	}
	slices.SortFunc(names, func(a, b loginName) int { return cmp.Compare(a.name, b.name) })
	rows := make([][]any, len(names))
	for i, n := range names {
		rows[i] = []any{n.of.TenantID, n.of.DirectoryID, n.name, n.of.ID}
	}
	return tx.copyRows(ctx, "login_names", "tenant_id, directory_id, name, account_id", rows)
}

// replaceLoginNames queues the change of the login names of an account that the transaction has
// locked. New names come before former ones go, in their order, so that two transactions that exchange
// names do not wait for each other.
func (tx *Tx) replaceLoginNames(before, after directoryapi.Account) {
	former := []string{field.LoginName(before.Username), field.LoginName(before.Email)}
	names := []string{field.LoginName(after.Username), field.LoginName(after.Email)}
	isIn := func(list []string) func(string) bool {
		return func(name string) bool { return slices.Contains(list, name) }
	}
	added := slices.DeleteFunc(slices.Clone(names), isIn(former))
	removed := slices.DeleteFunc(slices.Clone(former), isIn(names))
	if len(added) > 0 {
		tx.Queue(`INSERT INTO login_names (tenant_id, directory_id, name, account_id)
			SELECT DISTINCT $1::uuid, $2::uuid, name, $3::uuid FROM unnest($4::text[]) AS added (name) ORDER BY name`,
			after.TenantID, after.DirectoryID, after.ID, added)
	}
	if len(removed) > 0 {
		tx.Queue(`DELETE FROM login_names WHERE tenant_id = $1 AND directory_id = $2 AND name = ANY ($4)
			AND account_id = $3`,
			after.TenantID, after.DirectoryID, after.ID, removed)
	}
}

// renamed are the present login names, and those that are to be, of the accounts $3 of the tenant $1.
const renamed = `FROM unnest($3::uuid[], $4::text[], $5::text[]) AS n (id, username, email)
	JOIN accounts a ON a.tenant_id = $1 AND a.id = n.id CROSS JOIN LATERAL (VALUES `

// replaceMirroredLoginNames queues the change of the login names of accounts of a mirror directory, whose
// columns are about to be updated. Former names go first, because the accounts may exchange names; the
// lock of the mirror keeps other writers away.
func (tx *Tx) replaceMirroredLoginNames(tenant, directory id.ID, accounts []id.ID, usernames, emails []string) {
	tx.Queue(`DELETE FROM login_names l USING (
			SELECT former.name, a.id `+renamed+`(a.username_folded), (a.email_folded)) AS former (name)
			WHERE former.name NOT IN (n.username, n.email)) AS gone
		WHERE l.tenant_id = $1 AND l.directory_id = $2 AND l.name = gone.name AND l.account_id = gone.id`,
		tenant, directory, accounts, usernames, emails)
	tx.Queue(`INSERT INTO login_names (tenant_id, directory_id, name, account_id)
		SELECT DISTINCT $1::uuid, $2::uuid, added.name, a.id `+renamed+`(n.username), (n.email)) AS added (name)
		WHERE added.name NOT IN (a.username_folded, a.email_folded)`, tenant, directory, accounts, usernames, emails)
}
