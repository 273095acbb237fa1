package main

import (
	"context"
	"crypto/md5"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/deploy/e2e/harness"
	"github.com/doorward/doorward/pkg/deployment"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
)

// makeTemplate makes an application with a directory and an account in the first tenant.
func (s *system) makeTemplate(ctx context.Context) (*tenant, error) {
	const email = "jo@example.test"
	setup := s.client.Setup(ctx)
	made := setup.Fixture(e2e.Object{"name": "load"})
	account := setup.Post(made.Directory.Href()+"/accounts?registrationWorkflowEnabled=false", e2e.NewAccount(email))
	t := &tenant{
		id: s.client.Key.ID, secret: s.client.Key.Secret,
		application: made.Application.Href(), directory: made.Directory.Href(), account: account.Href(), email: email,
	}
	if setup.Err != nil {
		return nil, setup.Err
	}
	return t, s.getToken(ctx, t)
}

// enlargeTemplate makes the email template of a password reset in the tenant's directory as
// large as a template can be, and full of macros.
func (s *system) enlargeTemplate(ctx context.Context, t *tenant) error {
	const largest = 64_000 // characters of a body (docs/interface/limits.md)
	setup := s.client.Setup(ctx)
	directory := setup.Get(t.directory + "?expand=passwordPolicy")
	list := setup.Get(directory.Object("passwordPolicy").Object("resetEmailTemplates").Href()).Objects("items")
	if setup.Err == nil && len(list) != 1 {
		return fmt.Errorf("want one template, not %v", list)
	}
	const macros = "${url} ${account.fullName} $!{account.customData.none} "
	body := strings.Repeat(macros, largest/len(macros))
	for _, template := range list {
		setup.Post(template.Href(), e2e.Object{"textBody": body, "htmlBody": body, "mimeType": "multipart/alternative"})
	}
	return setup.Err
}

// getToken gets an access token of the account of a tenant.
func (s *system) getToken(ctx context.Context, t *tenant) error {
	setup := s.client.With(t.id, t.secret).Setup(ctx)
	t.token = setup.Post(t.application+"/oauth/token", e2e.PasswordGrant(t.email)).Text("access_token")
	return setup.Err
}

// uniqueTexts are the columns of texts that are unique in the deployment.
var uniqueTexts = map[string]bool{
	"directory.tenants.key": true, "oauth.api_keys.id": true, "oauth.api_key_routes.id": true,
	"application.dns_label_routes.label": true, "idsite.id_site_domains.domain": true, "idsite.id_sites.domain_name": true,
	"application.applications.dns_label": true, "oauth.web_configs.dns_label": true, "application.dns_labels.label": true,
}

// column is a column of a table with rows of tenants.
type column struct {
	Table, Name, Type string // Table with its schema
}

// columns are the columns of all such tables, except those of events and deliveries that wait.
func columns(ctx context.Context, db *pgx.Conn) ([]column, error) {
	rows, _ := db.Query(ctx, `SELECT c.relnamespace::regnamespace || '.' || c.relname, a.attname::text, a.atttypid::regtype::text
		FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
		WHERE c.relkind = 'r' AND c.relnamespace::regnamespace::text = ANY($1) AND c.relname NOT IN ('outbox', 'seen_events', 'deliveries')
		AND EXISTS (SELECT 1 FROM pg_attribute t WHERE t.attrelid = c.oid AND t.attname = 'tenant_id')
		ORDER BY c.oid, a.attnum`, deployment.Services) // its error comes with the rows
	return pgx.CollectRows(rows, pgx.RowToStructByPos[column])
}

// copyRows inserts copies of rows of a table, with the numbers from first to last. A value
// is the SQL expression of its column.
func copyRows(ctx context.Context, tx pgx.Tx, columns []column, expression func(column) string, where, of string, first, last int) error {
	var names, values []string
	for _, c := range columns {
		names, values = append(names, pgx.Identifier{c.Name}.Sanitize()), append(values, expression(c))
	}
	if _, err := tx.Exec(ctx, `SET LOCAL session_replication_role = replica`); err != nil { // no triggers
		return err
	}
	table := columns[0].Table
	_, err := tx.Exec(ctx, fmt.Sprintf(`INSERT INTO %s (%s) SELECT %s FROM %s t CROSS JOIN generate_series($2::int, $3::int) AS copies (number)
		WHERE t.%s = $1`, table, strings.Join(names, ", "), strings.Join(values, ", "), table, where), of, first, last)
	if err != nil {
		return fmt.Errorf("copy %s: %w", table, err)
	}
	return nil
}

// copyTenants makes so many copies of the first tenant's rows, with the numbers from first
// on, without events and deliveries that wait. A copy has the ids of the first tenant,
// hashed with its number.
func (s *system) copyTenants(ctx context.Context, first, count int) ([]*tenant, error) {
	err := harness.InDatabase(ctx, s.database, func(db *pgx.Conn) error {
		var tenantID string
		if err := db.QueryRow(ctx, `SELECT tenant_id::text FROM oauth.api_key_routes WHERE id = $1`, s.template.id).Scan(&tenantID); err != nil {
			return err
		}
		all, err := columns(ctx, db)
		if err != nil {
			return err
		}
		err = pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
			for from, i := 0, 1; i <= len(all); i++ {
				if i < len(all) && all[i].Table == all[from].Table {
					continue
				}
				if err := copyRows(ctx, tx, all[from:i], copyExpression, "tenant_id", tenantID, first, first+count-1); err != nil {
					return err
				}
				from = i
			}
			return s.sealAPIKeys(ctx, tx, first, count)
		})
		if err != nil {
			return err
		}
		_, err = db.Exec(ctx, `ANALYZE`)
		return err
	})
	if err != nil {
		return nil, err
	}
	tenants := make([]*tenant, count)
	for i := range tenants {
		tenants[i] = s.tenantCopy(first + i)
	}
	return tenants, nil
}

// copyExpression is the SQL expression of a column of a tenant's copy.
func copyExpression(c column) string {
	name := "t." + pgx.Identifier{c.Name}.Sanitize()
	switch {
	case c.Type == "uuid":
		return "md5(" + name + "::text || ':' || copies.number)::uuid"
	case uniqueTexts[c.Table+"."+c.Name]:
		return name + " || '-' || copies.number"
	}
	return name
}

// sealAPIKeys gives the API keys of the copies the secret of the first, encrypted for their ids.
func (s *system) sealAPIKeys(ctx context.Context, tx pgx.Tx, first, count int) error {
	ring, err := secure.ParseKeyring(secure.Secret(s.master))
	if err != nil {
		return err
	}
	ids, sealed := make([]string, count), make([][]byte, count)
	for i := range count {
		ids[i] = s.template.id + "-" + strconv.Itoa(first+i)
		sealed[i] = ring.Seal(secure.Secret(s.template.secret), "oauth.apikey/"+ids[i])
	}
	_, err = tx.Exec(ctx, `UPDATE oauth.api_keys k SET secret_sealed = v.sealed FROM unnest($1::text[], $2::bytea[]) AS v (id, sealed)
		WHERE k.id = v.id`, ids, sealed)
	return err
}

// tenantCopy is the n-th copy of the first tenant.
func (s *system) tenantCopy(n int) *tenant {
	address := func(of string) string {
		at := strings.LastIndex(of, "/") + 1
		original, err := id.Parse(of[at:])
		if err != nil {
			panic(err) // the product's own address
		}
		raw := fmt.Sprintf("%x-%x-%x-%x-%x", original[:4], original[4:6], original[6:8], original[8:10], original[10:])
		return of[:at] + id.ID(md5.Sum([]byte(raw+":"+strconv.Itoa(n)))).String()
	}
	t := *s.template
	t.id += "-" + strconv.Itoa(n)
	t.application, t.directory, t.account = address(t.application), address(t.directory), address(t.account)
	return &t
}

// addAccounts copies the account of a tenant so many times, so that searches find many.
func (s *system) addAccounts(ctx context.Context, t *tenant, accounts int) error {
	account, err := id.Parse(t.account[strings.LastIndex(t.account, "/")+1:])
	if err != nil {
		return err
	}
	expression := func(c column) string {
		name := "t." + pgx.Identifier{c.Name}.Sanitize()
		switch c.Name {
		case "id":
			return "md5(t.id::text || ':' || copies.number)::uuid"
		case "username", "username_folded", "email", "email_folded":
			return "copies.number || " + name
		case "search", "surname", "surname_folded":
			return name + " || md5(copies.number::text)"
		}
		return name
	}
	return harness.InDatabase(ctx, s.database, func(db *pgx.Conn) error {
		all, err := columns(ctx, db)
		if err != nil {
			return err
		}
		all = slices.DeleteFunc(all, func(c column) bool { return c.Table != "directory.accounts" })
		return pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
			return copyRows(ctx, tx, all, expression, "id", fmt.Sprintf("%x", account[:]), 1, accounts)
		})
	})
}
