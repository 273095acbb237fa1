package main

import (
	"context"
	"crypto/md5"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
)

// fill makes an application with a directory and an account in the first tenant.
func (s *site) fill(ctx context.Context) (*tenant, error) {
	application, err := s.ask(ctx, http.StatusCreated, e2e.Request{
		Method: http.MethodPost, URL: "/applications?createDirectory=true", Body: e2e.Object{"name": "load"},
	})
	if err != nil {
		return nil, err
	}
	mapping, err := s.ask(ctx, http.StatusOK, e2e.Request{
		Method: http.MethodGet, URL: application.Object("defaultAccountStoreMapping").Href(),
	})
	if err != nil {
		return nil, err
	}
	t := &tenant{id: s.client.Key.ID, secret: s.client.Key.Secret, application: application.Href(),
		directory: mapping.Object("accountStore").Href(), email: "jo@example.test"}
	account, err := s.ask(ctx, http.StatusCreated, e2e.Request{Method: http.MethodPost,
		URL:  t.directory + "/accounts?registrationWorkflowEnabled=false",
		Body: e2e.Object{"email": t.email, "password": e2e.Password, "givenName": "Jo", "surname": "Doe"}})
	if err != nil {
		return nil, err
	}
	t.account = account.Href()
	return t, s.token(ctx, t)
}

// ask sends a request of the first tenant.
func (s *site) ask(ctx context.Context, want int, r e2e.Request) (e2e.Object, error) {
	answer, err := s.client.Do(ctx, r)
	if err == nil && answer.Status != want {
		err = fmt.Errorf("want %d: %s", want, answer)
	}
	if err != nil {
		return nil, err
	}
	return answer.Object()
}

// growTemplate makes the mail of a reset in the directory of the first tenant as large
// as a template can be, and full of what has to be rendered.
func (s *site) growTemplate(ctx context.Context, t *tenant) error {
	const largest = 64_000 // characters of a body (docs/interface/limits.md)
	policy, err := s.ask(ctx, http.StatusOK, e2e.Request{Method: http.MethodGet, URL: t.directory + "?expand=passwordPolicy"})
	if err != nil {
		return err
	}
	templates := policy.Object("passwordPolicy").Object("resetEmailTemplates").Href()
	list, err := s.ask(ctx, http.StatusOK, e2e.Request{Method: http.MethodGet, URL: templates})
	if err != nil {
		return err
	}
	items, _ := list["items"].([]any)
	if len(items) != 1 {
		return fmt.Errorf("want one template, not %v", list)
	}
	template, _ := items[0].(map[string]any)
	macros := "${url} ${account.fullName} $!{account.customData.none} "
	body := strings.Repeat(macros, largest/len(macros))
	_, err = s.ask(ctx, http.StatusOK, e2e.Request{Method: http.MethodPost, URL: e2e.Object(template).Href(),
		Body: e2e.Object{"textBody": body, "htmlBody": body, "mimeType": "multipart/alternative"}})
	return err
}

// token gets an access token of the account of a tenant.
func (s *site) token(ctx context.Context, t *tenant) error {
	answer, status, err := s.exchange(ctx, t, form(t.application+"/oauth/token",
		url.Values{"grant_type": {"password"}, "username": {t.email}, "password": {e2e.Password}}))
	if err != nil {
		return err
	}
	var token struct {
		Access string `json:"access_token"`
	}
	if err := json.Unmarshal(answer, &token); err != nil || status != http.StatusOK {
		return fmt.Errorf("get a token: status %d: %s", status, answer)
	}
	t.token = token.Access
	return nil
}

// copied are the texts that are unique in the deployment, by column.
var copied = map[string]bool{
	"directory.tenants.key": true, "oauth.api_keys.id": true, "oauth.api_key_routes.id": true,
	"application.dns_label_routes.label": true, "idsite.id_site_domains.domain": true, "idsite.id_sites.domain_name": true,
	"application.applications.dns_label": true, "oauth.web_configs.dns_label": true, "application.dns_labels.label": true,
}

// copies copies the rows of the first tenant so many times, from the given number
// on: what it has, and nothing that is on its way. A copy has the ids of the
// first, hashed with its number.
func (s *site) copies(ctx context.Context, first, count int) ([]*tenant, error) {
	db, err := pgx.Connect(ctx, s.database)
	if err != nil {
		return nil, err
	}
	defer func() { _ = db.Close(context.WithoutCancel(ctx)) }()
	var of string
	if err := db.QueryRow(ctx, `SELECT tenant_id::text FROM oauth.api_key_routes WHERE id = $1`, s.template.id).Scan(&of); err != nil {
		return nil, err
	}
	type column struct {
		Schema, Table, Name, Type string
	}
	rows, err := db.Query(ctx, `SELECT c.relnamespace::regnamespace::text, c.relname::text, a.attname::text, a.atttypid::regtype::text
		FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
		WHERE c.relkind = 'r' AND c.relnamespace::regnamespace::text = ANY($1) AND c.relname NOT IN ('outbox', 'seen_events', 'deliveries')
		AND EXISTS (SELECT FROM pg_attribute t WHERE t.attrelid = c.oid AND t.attname = 'tenant_id')
		ORDER BY c.oid, a.attnum`, schemas)
	if err != nil {
		return nil, err
	}
	columns, err := pgx.CollectRows(rows, pgx.RowToStructByPos[column])
	if err != nil {
		return nil, err
	}
	var tables []string
	names, values := map[string][]string{}, map[string][]string{}
	for _, c := range columns {
		table, name := c.Schema+"."+c.Table, pgx.Identifier{c.Name}.Sanitize()
		if names[table] == nil {
			tables = append(tables, table)
		}
		value := "t." + name
		switch {
		case c.Type == "uuid":
			value = "md5(t." + name + "::text || ':' || copies.number)::uuid"
		case copied[table+"."+c.Name]:
			value = "t." + name + " || '-' || copies.number"
		}
		names[table], values[table] = append(names[table], name), append(values[table], value)
	}
	err = pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SET LOCAL session_replication_role = replica`); err != nil { // no triggers
			return err
		}
		for _, table := range tables {
			statement := fmt.Sprintf(`INSERT INTO %s (%s) SELECT %s FROM %s t CROSS JOIN generate_series($2::int, $3::int) AS copies (number)
				WHERE t.tenant_id = $1`, table, strings.Join(names[table], ", "), strings.Join(values[table], ", "), table)
			if _, err := tx.Exec(ctx, statement, of, first, first+count-1); err != nil {
				return fmt.Errorf("copy %s: %w", table, err)
			}
		}
		return s.seal(ctx, tx, first, count)
	})
	if err == nil {
		_, err = db.Exec(ctx, `ANALYZE`)
	}
	if err != nil {
		return nil, err
	}
	tenants := make([]*tenant, count)
	for i := range tenants {
		tenants[i] = s.copyOf(first + i)
	}
	return tenants, nil
}

// seal gives the API keys of copies the secret of the first, sealed for their ids.
func (s *site) seal(ctx context.Context, tx pgx.Tx, first, count int) error {
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

// copyOf is the n-th copy of the first tenant.
func (s *site) copyOf(n int) *tenant {
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

// grow copies the account of a tenant so many times, so that searches find many.
func (s *site) grow(ctx context.Context, t *tenant, accounts int) error {
	db, err := pgx.Connect(ctx, s.database)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close(context.WithoutCancel(ctx)) }()
	account, err := id.Parse(t.account[strings.LastIndex(t.account, "/")+1:])
	if err != nil {
		return err
	}
	rows, err := db.Query(ctx, `SELECT attname::text FROM pg_attribute
		WHERE attrelid = 'directory.accounts'::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = '' ORDER BY attnum`)
	if err != nil {
		return err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	values := make([]string, len(names))
	for i, name := range names {
		switch values[i] = "t." + name; name {
		case "id":
			values[i] = "md5(t.id::text || ':' || copies.number)::uuid"
		case "username", "username_folded", "email", "email_folded":
			values[i] = "copies.number || t." + name
		case "search", "surname", "surname_folded":
			values[i] = "t." + name + " || md5(copies.number::text)"
		}
	}
	return pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SET LOCAL session_replication_role = replica`); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, fmt.Sprintf(`INSERT INTO directory.accounts (%s) SELECT %s FROM directory.accounts t
			CROSS JOIN generate_series(1, %d) AS copies (number) WHERE t.id = $1`, strings.Join(names, ", "), strings.Join(values, ", "), accounts),
			fmt.Sprintf("%x", account[:]))
		return err
	})
}
