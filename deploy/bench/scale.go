package main

import (
	"context"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg/private"
)

// smallDirectory is how many accounts the small directory has.
const smallDirectory = 1000

// A search that is promised to cost the same in a directory of any size may take
// scaleAim times as long in the large one. The others find more there, or no
// index serves them.
const scaleAim = "<= 2"

// searches are queries of the accounts of a directory; $ stands for a value of
// one of its accounts.
var searches = []struct {
	promised bool
	queries  []string
}{
	{true, []string{
		"", "email=$email", "username=$username", "givenName=Xerop*", "q=rophi", "customData.ref=ref-500",
		"givenName=*ophila", "givenName=*roph*", "q=qqzzqq", "customData.city=Zwiefaltenbach", "customData.city=Zwiefa*",
		"customData.city=*ltenbach", "customData.city=*iefalt*", "customData.score=[5000,]", "createdAt=$created",
		"status=unverified", "offset=900",
		"orderBy=username", "orderBy=username+desc", "orderBy=email", "orderBy=email+desc", "orderBy=givenName", "orderBy=givenName+desc",
		"orderBy=middleName", "orderBy=middleName+desc", "orderBy=surname", "orderBy=surname+desc", "orderBy=fullName", "orderBy=fullName+desc",
		"orderBy=status", "orderBy=status+desc", "orderBy=emailVerificationStatus", "orderBy=emailVerificationStatus+desc",
		"orderBy=createdAt", "orderBy=createdAt+desc", "orderBy=modifiedAt", "orderBy=modifiedAt+desc",
		"orderBy=passwordModifiedAt", "orderBy=passwordModifiedAt+desc", "orderBy=customData.score", "orderBy=customData.score+desc",
	}},
	{false, []string{
		"orderBy=customData.nothing", "offset=$middle", "orderBy=surname,status+desc,email", "q=.500@", "q=xe", "q=qz", "q=a", "q=.test",
		"customData.plan=team", "modifiedAt=[2020,]",
	}},
}

// scale searches a small and a large directory in turns, over one connection.
func (r *run) scale(ctx context.Context) error {
	if !r.wants("scale") {
		return nil
	}
	s, err := openSite(ctx, "", r.deployment.key)
	if err != nil {
		return err
	}
	directories := r.Directories
	for _, count := range []int{smallDirectory, r.Large} {
		if len(r.Directories) > 0 {
			break
		}
		address, err := seed(ctx, s, r.database, r.deployment.keyFile, "bench of "+strconv.Itoa(count)+", "+s.run, count)
		if err != nil {
			return err
		}
		directories = append(directories, address)
		if r.keyFile != "" {
			r.atEnd(func(ctx context.Context) error { return s.delete(ctx, address) })
		}
	}
	var values [2]*strings.Replacer
	for i, address := range directories {
		if values[i], err = sample(ctx, s, address); err != nil {
			return fmt.Errorf("read a seeded directory: %w", err)
		}
	}
	c := connect(s.tls, s.authorization)
	defer c.close()
	for _, group := range searches {
		for _, query := range group.queries {
			var millis [2][]float64
			var found [2]int
			for began, round := time.Now(), 0; round < 7 || time.Since(began) < r.searchFor; round++ {
				for turn := range directories {
					i := (turn + round) % 2 // neither is always the first
					took, size, err := search(c, directories[i]+"/accounts?"+values[i].Replace(query))
					if err := errors.Join(err, ctx.Err()); err != nil {
						return fmt.Errorf("search %s: %w", query, err)
					}
					millis[i], found[i] = append(millis[i], took), size
				}
			}
			aim := ""
			if group.promised {
				aim = scaleAim
			}
			small, large := millis[0][2:], millis[1][2:] // the first two fill caches
			r.report.Rows = append(r.report.Rows, row{Section: "scale", Name: fmt.Sprintf("?%s: %d, %d", query, found[0], found[1]), Unit: "ms",
				Value: spreadOf(large), Over: "small", Ratio: ratio(large, small), Aims: aims{Rate: aim}})
		}
	}
	log.Printf("searched directories of %d and %d accounts", smallDirectory, r.Large)
	return nil
}

// sample takes values to search for from a directory.
func sample(ctx context.Context, s *site, address string) (*strings.Replacer, error) {
	address += "/accounts?orderBy=createdAt&offset=200&limit=20"
	page, err := s.read(ctx, address)
	if err != nil {
		return nil, err
	}
	size, _ := page["size"].(float64)
	accounts := items(page)
	if len(accounts) < 20 {
		return nil, fmt.Errorf("it has %.0f accounts; at least 220 are needed", size)
	}
	first, last := accounts[0], accounts[19]
	return strings.NewReplacer("$email", url.QueryEscape(first.Text("email")), "$username", url.QueryEscape(first.Text("username")),
		"$created", url.QueryEscape("["+first.Text("createdAt")+","+last.Text("createdAt")+"]"), "$middle", strconv.Itoa(int(size)/2)), nil
}

// search returns the time of an answer in milliseconds and the size of what was
// found.
func search(c *connection, address string) (took float64, found int, err error) {
	began := time.Now()
	if err := c.send(get(address)); err != nil {
		return 0, 0, err
	}
	took = float64(time.Since(began)) / float64(time.Millisecond)
	var page struct{ Size int }
	err = json.Unmarshal(c.response.Body(), &page)
	return took, page.Size, err
}

//go:embed scale.sql
var seedStatements string

// seed makes a directory over the interface, fills it in the database, all or
// nothing, and returns its address. For many accounts it is faster to make the
// indexes of the searches again than to add to them; until the end other
// transactions cannot use the tables.
func seed(ctx context.Context, s *site, database, keyFile, name string, count int) (address string, err error) {
	if database == "" {
		if database, err = private.Running(filepath.Join(filepath.Dir(keyFile), "postgres")); err != nil {
			return "", fmt.Errorf("%w; -database names another", err)
		}
	}
	config, err := pgx.ParseConfig(database)
	if err != nil {
		return "", errors.New("-database is no address of a PostgreSQL")
	}
	config.RuntimeParams["search_path"] = "directory"
	db, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return "", fmt.Errorf("connect to the directory service's database: %w", err)
	}
	defer db.Close(context.WithoutCancel(ctx))
	directory, err := s.create(ctx, s.base+"/directories", e2e.Object{"name": name})
	if err != nil {
		return "", fmt.Errorf("make a directory: %w", err)
	}
	began := time.Now()
	const batch = 50_000
	fill := func(tx pgx.Tx) error {
		for from := 0; from < count; from += batch {
			until := min(from+batch, count)
			if err := set(ctx, tx, "from", strconv.Itoa(from), "until", strconv.Itoa(until)); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, seedStatements); err != nil {
				return err
			}
			log.Printf("%s: %d of %d accounts in %.1f s", name, until, count, time.Since(began).Seconds())
		}
		return nil
	}
	err = pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		if err := set(ctx, tx, "tenant", uuid(directory.Object("tenant")), "directory", uuid(directory), "count", strconv.Itoa(count),
			"words", "{"+strings.Join(words(), ",")+"}"); err != nil {
			return err
		}
		if count <= 10_000 {
			return fill(tx)
		}
		return withoutIndexes(ctx, tx, func() error { return fill(tx) })
	})
	if err == nil {
		_, err = db.Exec(ctx, "VACUUM (ANALYZE) accounts, account_values, account_counts, custom_data")
	}
	if err != nil {
		return "", fmt.Errorf("fill the directory: %w", err)
	}
	return directory.Href(), nil
}

// set hands values to the statements of scale.sql.
func set(ctx context.Context, tx pgx.Tx, pairs ...string) error {
	for i := 0; i < len(pairs); i += 2 {
		if _, err := tx.Exec(ctx, "SELECT set_config('bench.' || $1::text, $2::text, true)", pairs[i], pairs[i+1]); err != nil {
			return err
		}
	}
	return nil
}

// uuid is the database's form of a resource's id; it is empty for no id.
func uuid(resource e2e.Object) string {
	v, err := id.Parse(resource.ID())
	if err != nil {
		return ""
	}
	return hex.EncodeToString(v[:])
}

// words are 900 different names made of syllables.
func words() (all []string) {
	heads, vowels := strings.Fields("b br d f gr h k l m n p r st t v"), strings.Fields("a e i o")
	for n := range 900 {
		all = append(all, heads[n%15]+vowels[n/15%4]+heads[n/60]+vowels[n%4]+"n")
	}
	return all
}

// withoutIndexes calls fn while the tables have only the indexes of their
// constraints, and makes the others again.
func withoutIndexes(ctx context.Context, tx pgx.Tx, fn func() error) error {
	rows, err := tx.Query(ctx, `SELECT 'DROP INDEX ' || i.indexrelid::regclass, pg_get_indexdef(i.indexrelid)
		FROM pg_index i WHERE i.indrelid IN ('accounts'::regclass, 'account_values'::regclass)
		AND NOT EXISTS (SELECT FROM pg_constraint c WHERE c.conindid = i.indexrelid) ORDER BY 1`)
	if err != nil {
		return err
	}
	indexes, err := pgx.CollectRows(rows, pgx.RowToStructByPos[struct{ Drop, Create string }])
	if err != nil {
		return err
	}
	for _, index := range indexes {
		if _, err := tx.Exec(ctx, index.Drop); err != nil {
			return err
		}
	}
	if err := fn(); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `SET LOCAL maintenance_work_mem = '512MB'`); err != nil {
		return err
	}
	for _, index := range indexes {
		if _, err := tx.Exec(ctx, index.Create); err != nil {
			return err
		}
	}
	return nil
}
