// This file fills a directory with generated accounts, by COPY; load_test.go has
// the statements.
package store_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/customdata"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/directory/store"
)

// batch is how many accounts are copied at once, and many are so many that it
// is faster to make the indexes again than to add to them.
const (
	batch = 5000
	many  = 10_000
)

// seeder is connected to the database of a deployment.
type seeder struct {
	db    *pg.DB
	store *store.Store
	now   time.Time
}

// openSeeder connects to the database of a deployment, whose service has made its
// tables. The accounts' times lie before now.
func openSeeder(ctx context.Context, url secure.Secret, now time.Time) (*seeder, error) {
	db, err := pg.Open(ctx, pg.Config{URL: url, Schema: "directory", MaxConns: 2})
	if err != nil {
		return nil, fmt.Errorf("connect to the directory service's database: %w", err)
	}
	return &seeder{db: db, store: store.New(db, func() time.Time { return now }), now: now}, nil
}

// Close ends the connections.
func (s *seeder) Close() { s.db.Close() }

// Fill adds count generated accounts to a directory that has none of them yet,
// all or none, and logs how many there are after each batch. Directories that
// are filled hold the same planted accounts beside others. While many are
// added nobody else can use the tables.
func (s *seeder) Fill(ctx context.Context, tenant, directory id.ID, count int, tell func(done int)) error {
	batches := func(yield func([]store.Loaded) bool) {
		for from := 0; from < count; from += batch {
			accounts := make([]store.Loaded, min(batch, count-from))
			for i := range accounts {
				accounts[i] = account(tenant, directory, from+i, count, s.now)
			}
			if !yield(accounts) {
				return
			}
			tell(from + len(accounts))
		}
	}
	if err := s.store.Load(ctx, tenant, directory, count > many, batches); err != nil {
		return fmt.Errorf("load the accounts: %w", err)
	}
	return nil
}

// Analyze brings the tables to the state in which they would be had their rows
// come in the course of time.
func (s *seeder) Analyze(ctx context.Context) error {
	if err := s.store.Analyze(ctx); err != nil {
		return fmt.Errorf("vacuum the tables: %w", err)
	}
	return nil
}

// What every filled directory has 20 times, or as often as it has accounts: so
// many accounts at even distances are planted, and others are never like them.
const (
	planted          = 20
	plantedGivenName = "Xerophila"
	plantedCity      = "Zwiefaltenbach"
	plantedScore     = 5000 // and the 19 numbers that follow; others are below 1000
)

// span is the time over which the accounts of a directory were created.
const span = 3 * 365 * 24 * time.Hour

// account is the nth of a directory. It is the same at every run but for its
// ids and the time at which it ends.
func account(tenant, directory id.ID, n, count int, now time.Time) store.Loaded {
	random := rand.New(rand.NewPCG(uint64(n), 0))
	created := now.Add(-span + span/time.Duration(count)*time.Duration(n)).UTC().Truncate(time.Millisecond)
	given, surname, city := pick(random, givenNames), pick(random, surnames), pick(random, cities)
	score := random.IntN(1000)
	every := max(count/planted, 1)
	if n%every == 0 && n/every < planted {
		given, city, score = plantedGivenName, plantedCity, plantedScore+n/every
	}
	a := directoryapi.Account{
		TenantID: tenant, ID: id.New(created), DirectoryID: directory,
		Email:     strings.ToLower(given+"."+surname) + "." + strconv.Itoa(n) + "@" + pick(random, domains),
		GivenName: &given, Surname: &surname,
		Status: pick(random, statuses), EmailVerificationStatus: directoryapi.Verified,
		CreatedAt: created, ModifiedAt: created.Add(time.Duration(random.Int64N(int64(now.Sub(created)) + 1))).Truncate(
			time.Millisecond),
	}
	a.Username = a.Email
	if random.IntN(4) == 0 {
		a.Username = strings.ToLower(given[:1]+surname) + strconv.Itoa(n)
	}
	if random.IntN(5) == 0 {
		middle := pick(random, givenNames)
		a.MiddleName = &middle
	}
	if a.Status == directoryapi.Unverified {
		a.EmailVerificationStatus = directoryapi.Unverified
	}
	a.PasswordModifiedAt = &a.ModifiedAt
	return store.Loaded{Account: a,
		CustomData: customdata.Document(fmt.Sprintf(`{"plan":%q,"score":%d,"city":%q,"ref":%q}`,
			pick(random, plans), score, city, reference(n)))}
}

var (
	statuses = []string{directoryapi.Enabled, directoryapi.Enabled, directoryapi.Enabled, directoryapi.Enabled,
		directoryapi.Enabled, directoryapi.Enabled, directoryapi.Enabled, directoryapi.Disabled, directoryapi.Disabled,
		directoryapi.Unverified}
	plans   = []string{"free", "starter", "team", "business", "enterprise"}
	domains = []string{"example.test", "mail.example.test", "post.example", "letters.example", "inbox.test"}
)

// reference is the value customData.ref of the nth account, which no other of
// its directory has.
func reference(n int) string {
	mixed := uint64(n)*0x9e3779b97f4a7c15 + 1 // odd, so that no two are the same
	return "ref-" + strconv.FormatUint(mixed, 36)
}

func pick[T any](random *rand.Rand, of []T) T { return of[random.IntN(len(of))] }

// The names are made of syllables.
var (
	givenNames = words(300, 1, 2, 3)
	surnames   = words(900, 2, 2, 4)
	cities     = words(200, 3, 2, 3)
)

func words(count int, stream uint64, least, most int) []string {
	random := rand.New(rand.NewPCG(stream, stream))
	known := map[string]bool{}
	var all []string
	for len(all) < count {
		var word strings.Builder
		for range least + random.IntN(most-least+1) {
			word.WriteString(pick(random, heads) + pick(random, vowels))
		}
		word.WriteString(pick(random, tails))
		text := strings.ToUpper(word.String()[:1]) + word.String()[1:]
		if !known[text] {
			known[text] = true
			all = append(all, text)
		}
	}
	return all
}

var (
	heads  = strings.Fields("b br c ch d f g gr h j k kl l m n p r s sh st t th tr v w")
	vowels = strings.Fields("a a e e i i o o u ai ea ou")
	tails  = []string{"", "", "n", "r", "s", "l", "m", "nd", "rt", "ck"}
)
