package seed

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/customdata"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/directory/store"
)

// What every filled directory has 20 times, or as often as it has accounts: so
// many accounts at even distances are planted, and others are never like them.
const (
	Planted          = 20
	PlantedGivenName = "Xerophila"
	PlantedCity      = "Zwiefaltenbach"
	PlantedScore     = 5000 // and the 19 numbers that follow; others are below 1000
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
	every := max(count/Planted, 1)
	if n%every == 0 && n/every < Planted {
		given, city, score = PlantedGivenName, PlantedCity, PlantedScore+n/every
	}
	a := directoryapi.Account{
		TenantID: tenant, ID: id.New(created), DirectoryID: directory,
		Email:     strings.ToLower(given+"."+surname) + "." + strconv.Itoa(n) + "@" + pick(random, domains),
		GivenName: &given, Surname: &surname,
		Status: pick(random, statuses), EmailVerificationStatus: directoryapi.Verified,
		CreatedAt: created, ModifiedAt: created.Add(time.Duration(random.Int64N(int64(now.Sub(created)) + 1))).Truncate(time.Millisecond),
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
	return store.Loaded{Account: a, CustomData: customdata.Document(fmt.Sprintf(`{"plan":%q,"score":%d,"city":%q,"ref":%q}`,
		pick(random, plans), score, city, reference(n)))}
}

var (
	statuses = []string{directoryapi.Enabled, directoryapi.Enabled, directoryapi.Enabled, directoryapi.Enabled,
		directoryapi.Enabled, directoryapi.Enabled, directoryapi.Enabled, directoryapi.Disabled, directoryapi.Disabled, directoryapi.Unverified}
	plans   = []string{"free", "starter", "team", "business", "enterprise"}
	domains = []string{"example.test", "mail.example.test", "post.example", "letters.example", "inbox.test"}
)

// Reference is the value customData.ref of the nth account, which no other of
// its directory has.
func Reference(n int) string { return reference(n) }

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
