package store_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/directory/store"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var now = time.Date(2026, 11, 20, 20, 25, 0, 0, time.UTC)

// open returns a seeder, a store, and a tenant.
func open(t *testing.T) (*seeder, *store.Store, *pg.DB, id.ID) {
	t.Helper()
	db := pgtest.Open(t, store.Config)
	seeding, err := openSeeder(t.Context(), secure.Secret(pgtest.URL(db)), now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(seeding.Close)
	tenant := id.New(now)
	if _, err := pg.Exec(t.Context(), db, `INSERT INTO tenants (tenant_id, key, name, created_at, modified_at)
		VALUES ($1, 'k', 'k', $2, $2)`, tenant, now); err != nil {
		t.Fatal(err)
	}
	return seeding, store.New(db, func() time.Time { return now }), db, tenant
}

func fill(t *testing.T, s *seeder, db *pg.DB, tenant id.ID, count int) (directory id.ID) {
	t.Helper()
	directory = id.New(now)
	if _, err := pg.Exec(t.Context(), db, `INSERT INTO directories (tenant_id, id, name, name_folded, status, schema_id,
		created_at, modified_at)
		VALUES ($1, $2, $3, $3, 'ENABLED', $2, $4, $4)`, tenant, directory, directory.String(), now); err != nil {
		t.Fatal(err)
	}
	last := 0
	if err := s.Fill(t.Context(), tenant, directory, count, func(done int) { last = done }); err != nil {
		t.Fatal(err)
	}
	if last != count {
		t.Errorf("the last word of progress is %d of %d", last, count)
	}
	return directory
}

func query(t *testing.T, raw string) list.Query {
	t.Helper()
	q, err := list.Parse(raw, store.DirectoryAccounts)
	if err != nil {
		t.Fatalf("Parse(%q): %v", raw, err)
	}
	return q
}

func TestFilledDirectoriesHoldThePlantedAccounts(t *testing.T) {
	t.Parallel()
	seeding, stored, db, tenant := open(t)
	small, large := fill(t, seeding, db, tenant, 40), fill(t, seeding, db, tenant, 10_001)
	if err := seeding.Analyze(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, directory := range []struct {
		id    id.ID
		count int
	}{{small, 40}, {large, 10_001}} {
		for raw, want := range map[string]int{
			"":                              directory.count,
			"createdAt=[2000,]":             directory.count,
			"givenName=" + plantedGivenName: planted,
			"q=" + strings.ToUpper(plantedGivenName[2:]):        planted,
			"customData.city=" + plantedCity:                    planted,
			fmt.Sprintf("customData.score=[%d,]", plantedScore): planted,
			"customData.ref=" + reference(39):                   1,
		} {
			page, err := stored.ListAccounts(t.Context(), tenant, []id.ID{directory.id}, nil, query(t, raw))
			if err != nil || page.Size != want || len(page.Items) != min(want, page.Limit) {
				t.Errorf("of %d accounts %q finds %d on a page of %d, %v; want %d", directory.count, raw, page.Size,
					len(page.Items), err, want)
			}
		}
	}
}

// Every search and order that is documented has its index.
func TestSearchesUseTheirIndex(t *testing.T) {
	t.Parallel()
	seeding, stored, db, tenant := open(t)
	directory := fill(t, seeding, db, tenant, 5000)
	if _, err := pg.Exec(t.Context(), db, `INSERT INTO account_values (tenant_id, account_id, place, directory_id, path,
		element, text, moment)
		SELECT tenant_id, id, 9, directory_id, 'joined', false, created_at::text, created_at FROM accounts`); err != nil {
		t.Fatal(err)
	}
	if err := seeding.Analyze(t.Context()); err != nil {
		t.Fatal(err)
	}
	for raw, index := range map[string]string{
		"":                                "accounts_of_directory",
		"username=nobody":                 "accounts_tenant_id_directory_id_username_folded_key",
		"email=nobody@example.test":       "accounts_tenant_id_directory_id_email_folded_key",
		"email=nobody*":                   "accounts_tenant_id_directory_id_email_folded_key",
		"givenName=Xero*":                 "accounts_by_given_name",
		"middleName=Xero*":                "accounts_by_middle_name",
		"surname=Xero*":                   "accounts_by_surname",
		"givenName=*phila":                "accounts_search",
		"email=*phila*":                   "accounts_search",
		"q=rophila":                       "accounts_search",
		"createdAt=2026-11-20T20:24":      "accounts_by_creation",
		"modifiedAt=2001":                 "accounts_by_change",
		"passwordModifiedAt=2001":         "accounts_by_password_change",
		"customData.ref=none":             "account_values_by_text",
		"customData.ref=no*":              "account_values_by_text",
		"customData.score=[5010,]":        "account_values_by_number",
		"customData.joined=[2015]":        "account_values_by_moment",
		"orderBy=username":                "accounts_tenant_id_directory_id_username_folded_key",
		"orderBy=email+desc":              "accounts_tenant_id_directory_id_email_folded_key",
		"orderBy=givenName":               "accounts_by_given_name",
		"orderBy=givenName+desc":          "accounts_by_given_name",
		"orderBy=middleName":              "accounts_by_middle_name",
		"orderBy=surname":                 "accounts_by_surname",
		"locale=de-AT":                    "accounts_by_locale",
		"orderBy=locale":                  "accounts_by_locale",
		"orderBy=fullName":                "accounts_by_full_name",
		"orderBy=status+desc":             "accounts_by_status",
		"orderBy=emailVerificationStatus": "accounts_by_verification",
		"orderBy=createdAt":               "accounts_by_creation",
		"orderBy=modifiedAt+desc":         "accounts_by_change",
		"orderBy=passwordModifiedAt":      "accounts_by_password_change",
		"orderBy=customData.score":        "account_values_by_number",
		"orderBy=customData.score+desc":   "account_values_by_number",
		"status=UNVERIFIED":               "accounts_by_status",
	} {
		plans, err := stored.Explain(t.Context(), tenant, directory, query(t, raw))
		if err != nil {
			t.Fatalf("the plan of %q: %v", raw, err)
		}
		if !strings.Contains(plans, index) {
			t.Errorf("%q does not use %s:\n%s", raw, index, plans)
		}
	}
}
