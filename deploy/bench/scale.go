package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/services/directory/seed"
)

// scaleName is what -only calls the comparison of a small directory with a
// large one.
const scaleName = "scale"

// smallDirectory is how many accounts the small one has.
const smallDirectory = 1000

// scaleTarget is how much longer a promised answer may take in a large directory.
const scaleTarget = 2.0

// search is a question to the accounts of a directory.
type search struct {
	name     string
	promised bool // to cost the same in a directory of any size
	query    func(d *seeded) string
}

// searches, in the order of the report. Those that are not promised find more
// in a large directory, or are known to cost more there.
var searches = []search{
	{"first page", true, always("")},
	{"email", true, func(d *seeded) string { return "email=" + url.QueryEscape(d.sample.Text("email")) }},
	{"username", true, func(d *seeded) string { return "username=" + url.QueryEscape(d.sample.Text("username")) }},
	{"name prefix", true, always("givenName=" + seed.PlantedGivenName[:5] + "*")},
	{"q", true, always("q=" + seed.PlantedGivenName[2:7])},
	{"customData.x=y", true, always("customData.ref=" + seed.Reference(500))},

	{"name *suffix", true, always("givenName=*" + seed.PlantedGivenName[3:])},
	{"name *infix*", true, always("givenName=*" + seed.PlantedGivenName[2:6] + "*")},
	{"q that finds none", true, always("q=qqzzqq")},
	{"customData text", true, always("customData.city=" + seed.PlantedCity)},
	{"customData prefix*", true, always("customData.city=" + seed.PlantedCity[:6] + "*")},
	{"customData *suffix", true, always("customData.city=*" + seed.PlantedCity[6:])},
	{"customData *infix*", true, always("customData.city=*" + seed.PlantedCity[2:8] + "*")},
	{"customData [a,b]", true, always(fmt.Sprintf("customData.score=[%d,]", seed.PlantedScore))},
	{"createdAt [a,b]", true, func(d *seeded) string { return "createdAt=" + url.QueryEscape("["+d.from+","+d.until+"]") }},
	{"status", true, always("status=unverified")},
	{"offset 900", true, always("offset=900")},

	{"by username", true, always("orderBy=username")},
	{"by username desc", true, always("orderBy=username+desc")},
	{"by email", true, always("orderBy=email")},
	{"by email desc", true, always("orderBy=email+desc")},
	{"by givenName", true, always("orderBy=givenName")},
	{"by givenName desc", true, always("orderBy=givenName+desc")},
	{"by middleName", true, always("orderBy=middleName")},
	{"by middleName desc", true, always("orderBy=middleName+desc")},
	{"by surname", true, always("orderBy=surname")},
	{"by surname desc", true, always("orderBy=surname+desc")},
	{"by fullName", true, always("orderBy=fullName")},
	{"by fullName desc", true, always("orderBy=fullName+desc")},
	{"by status", true, always("orderBy=status")},
	{"by status desc", true, always("orderBy=status+desc")},
	{"by emailVerificationStatus", true, always("orderBy=emailVerificationStatus")},
	{"by emailVerificationStatus desc", true, always("orderBy=emailVerificationStatus+desc")},
	{"by createdAt", true, always("orderBy=createdAt")},
	{"by createdAt desc", true, always("orderBy=createdAt+desc")},
	{"by modifiedAt", true, always("orderBy=modifiedAt")},
	{"by modifiedAt desc", true, always("orderBy=modifiedAt+desc")},
	{"by passwordModifiedAt", true, always("orderBy=passwordModifiedAt")},
	{"by passwordModifiedAt desc", true, always("orderBy=passwordModifiedAt+desc")},
	{"by customData.score", true, always("orderBy=customData.score")},
	{"by customData.score desc", true, always("orderBy=customData.score+desc")},
	{"by customData of nobody", false, always("orderBy=customData.nothing")},

	{"offset in the middle", false, func(d *seeded) string { return "offset=" + strconv.Itoa(d.accounts/2) }},
	{"by surname, status, email", false, always("orderBy=surname,status+desc,email")},
	{"q of common parts", false, always("q=.500@")},
	{"q of two letters, many", false, always("q=xe")},
	{"q of two letters, none", false, always("q=qz")},
	{"q of one letter, all", false, always("q=a")},
	{"q, three in five", false, always("q=.test")},
	{"customData, one in five", false, always("customData.plan=team")},
	{"modifiedAt, most", false, always("modifiedAt=" + url.QueryEscape("[2020,]"))},
}

func always(query string) func(*seeded) string { return func(*seeded) string { return query } }

// seeded is a directory full of generated accounts.
type seeded struct {
	address     string
	accounts    int
	sample      e2e.Object // an account
	from, until string     // times between which 20 accounts were created
}

// Scaled is a search in both directories.
type Scaled struct {
	Name     string      `json:"name"`
	Promised bool        `json:"promised"`
	Rounds   int         `json:"rounds"`
	Found    [2]int      `json:"found"` // in the small and in the large directory
	Small    Percentiles `json:"small"`
	Large    Percentiles `json:"large"`
	Ratio    float64     `json:"ratio"` // of the medians
}

// Scale is how a small directory compares with a large one.
type Scale struct {
	Small    int      `json:"smallAccounts"`
	Large    int      `json:"largeAccounts"`
	Seconds  float64  `json:"seedSeconds"` // it took to fill both
	Searches []Scaled `json:"searches"`
}

// scale fills two directories, or takes two that were filled, and searches them
// in turns.
func scale(ctx context.Context, o Options, d *deployment, tell func(string, ...any)) (report *Scale, err error) {
	if err := onLoopback(ctx, d.key); err != nil {
		return nil, err
	}
	client, err := e2e.NewClient(d.key)
	if err != nil {
		return nil, err
	}
	s := &site{client: client, tls: client.TLS(), address: client.Address()}
	began := time.Now()
	addresses := o.Directories
	if len(addresses) == 0 {
		if addresses, err = fillTwo(ctx, o, d, client, tell); err != nil {
			return nil, err
		}
		if d.standalone == nil {
			defer func() { err = errors.Join(err, s.delete(context.WithoutCancel(ctx), addresses...)) }()
		}
	}
	report = &Scale{Seconds: time.Since(began).Seconds()}
	var both [2]*seeded
	for i, address := range addresses {
		if both[i], err = s.look(ctx, address); err != nil {
			return nil, fmt.Errorf("look at the filled directory %s: %w", address, err)
		}
	}
	report.Small, report.Large = both[0].accounts, both[1].accounts
	line := &siteLine{wire: newWire(s.address, s.tls, patience), site: s}
	defer line.close()
	for _, search := range searches {
		found, err := line.compare(ctx, search, both, o.perSearch())
		if err != nil {
			return nil, fmt.Errorf("search %s: %w", search.name, err)
		}
		tell("%s: %.2f times as long in the large directory", search.name, found.Ratio)
		report.Searches = append(report.Searches, found)
	}
	return report, nil
}

func fillTwo(ctx context.Context, o Options, d *deployment, client *e2e.Client, tell func(string, ...any)) (addresses []string, err error) {
	seeder, err := openSeeder(ctx, o.Database, d.keyFile)
	if err != nil {
		return nil, err
	}
	defer seeder.Close()
	for _, count := range []int{smallDirectory, o.Large} {
		address, err := fillDirectory(ctx, client, seeder, fmt.Sprintf("bench of %d accounts, %s", count, time.Now().Format(time.DateTime)), count, tell)
		if err != nil {
			return nil, err
		}
		addresses = append(addresses, address)
	}
	tell("vacuuming the tables")
	return addresses, seeder.Settle(ctx)
}

// look learns from a filled directory what to search for.
func (s *site) look(ctx context.Context, address string) (*seeded, error) {
	d := &seeded{address: address}
	page, err := s.get(ctx, address+"/accounts?orderBy=createdAt&offset=200&limit=20")
	if err != nil {
		return nil, err
	}
	size, _ := page["size"].(float64)
	items, _ := page["items"].([]any)
	if len(items) < 20 {
		return nil, fmt.Errorf("it has %.0f accounts; at least 220 are needed", size)
	}
	first, _ := items[0].(map[string]any)
	last, _ := items[19].(map[string]any)
	d.accounts, d.sample = int(size), first
	d.from, d.until = e2e.Object(first).Text("createdAt"), e2e.Object(last).Text("createdAt")
	return d, nil
}

// compare asks both directories in turns until the time is over, at least five
// times, after asking each twice.
func (l *siteLine) compare(ctx context.Context, s search, both [2]*seeded, length time.Duration) (Scaled, error) {
	result := Scaled{Name: s.name, Promised: s.promised}
	tallies := [2]*tally{newTally(), newTally()}
	var until time.Time
	for round := -2; round < 5 || time.Now().Before(until); round++ {
		if round == 0 {
			until = time.Now().Add(length)
		}
		for turn := range both {
			i := (turn + round + 2) % 2 // neither is always the first
			took, found, err := l.size(both[i].address + "/accounts?" + s.query(both[i]))
			if err == nil {
				err = context.Cause(ctx)
			}
			if err != nil {
				return result, err
			}
			result.Found[i] = found
			if round >= 0 {
				tallies[i].count(took, nil)
			}
		}
	}
	result.Rounds = tallies[0].done()
	result.Small, result.Large = percentiles(tallies[0].latencies), percentiles(tallies[1].latencies)
	result.Ratio = result.Large.P50 / result.Small.P50
	return result, nil
}

// size asks for a page and gives the size of the whole.
func (l *siteLine) size(address string) (took time.Duration, found int, err error) {
	l.ask("GET", address)
	began := time.Now()
	if err := l.send(fasthttp.StatusOK); err != nil {
		return 0, 0, err
	}
	took = time.Since(began)
	var page struct {
		Size int `json:"size"`
	}
	err = json.Unmarshal(l.answer.Body(), &page)
	return took, page.Size, err
}

// broken names the promised searches that took too much longer.
func (s *Scale) broken() (names []string) {
	for _, search := range s.Searches {
		if search.Promised && search.Ratio > scaleTarget {
			names = append(names, search.Name)
		}
	}
	slices.Sort(names)
	return names
}
