package main

import (
	"context"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"log"
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg/private"
)

// smallDirectory is how many accounts the small directory has.
const smallDirectory = 1000

// searches are queries of the accounts of a directory by their aim; $ stands for a
// value of one of its accounts. A search with an aim may take so many times as long
// in the large directory. The others find more there, or no index serves them.
var searches = []struct{ aim, queries string }{
	{"<= 2", `  email=$email  username=$username  givenName=Xerop*  q=rophi  customData.ref=ref-500  givenName=*ophila  givenName=*roph*
		q=qqzzqq  customData.city=Zwiefaltenbach  customData.city=Zwiefa*  customData.city=*ltenbach  customData.city=*iefalt*
		customData.score=[5000,]  createdAt=$created  status=unverified  limit=25  offset=900
		orderBy=username  orderBy=username+desc  orderBy=email  orderBy=email+desc  orderBy=givenName  orderBy=givenName+desc
		orderBy=middleName  orderBy=middleName+desc  orderBy=surname  orderBy=surname+desc  orderBy=fullName  orderBy=fullName+desc
		orderBy=status  orderBy=status+desc  orderBy=emailVerificationStatus  orderBy=emailVerificationStatus+desc
		orderBy=createdAt  orderBy=createdAt+desc  orderBy=modifiedAt  orderBy=modifiedAt+desc
		orderBy=passwordModifiedAt  orderBy=passwordModifiedAt+desc  orderBy=customData.score  orderBy=customData.score+desc`},
	{"", `orderBy=customData.nothing  offset=$middle  orderBy=surname,status+desc,email  q=.500@  q=xe  q=qz  q=a  q=.test
		customData.plan=team  modifiedAt=[2020,]`},
}

// scale searches a small and a large directory in turns, over one connection.
func (r *run) scale(ctx context.Context) error {
	s := r.standalone
	c := connect(s.tls, s.authorization)
	defer c.close()
	var directories [2]string
	var values [2]*strings.Replacer
	for i, count := range []int{smallDirectory, r.large} {
		address, err := seed(ctx, s, "", s.KeyFile(), "bench of "+strconv.Itoa(count), count)
		if err != nil {
			return err
		}
		directories[i] = address + "/accounts?"
		if values[i], err = sample(s.client.Setup(ctx), address); err != nil {
			return err
		}
	}
	for _, group := range searches {
		for _, query := range strings.Fields(group.queries) {
			var millis [2][]float64
			var found [2]float64
			for began, round := time.Now(), 0; round < 7 || time.Since(began) < r.searchFor; round++ {
				for turn := range directories {
					i := (turn + round) % 2 // neither is always the first
					sent := time.Now()
					err := c.send(http.StatusOK, e2e.Get(directories[i]+values[i].Replace(query)))
					millis[i] = append(millis[i], float64(time.Since(sent))/float64(time.Millisecond))
					page, readErr := c.object()
					if err := errors.Join(ctx.Err(), err, readErr); err != nil {
						return fmt.Errorf("search %s: %w", query, err)
					}
					found[i] = size(page)
				}
			}
			small, large := millis[0][2:], millis[1][2:] // the first two fill caches
			w := r.report.add("scale", fmt.Sprintf("?%s: %.0f, %.0f", query, found[0], found[1]), "ms", group.aim, large...)
			w.over = &row{name: "small", values: small}
		}
	}
	log.Printf("searched directories of %d and %d accounts", smallDirectory, r.large)
	return nil
}

// sample takes values to search for from a directory, which has a thousand accounts
// at least.
func sample(c *e2e.Setup, address string) (*strings.Replacer, error) {
	page := c.Get(address + "/accounts?orderBy=createdAt&offset=200&limit=20")
	if c.Err != nil {
		return nil, c.Err
	}
	accounts := page.Objects("items")
	first, last := accounts[0], accounts[19]
	return strings.NewReplacer("$email", url.QueryEscape(first.Text("email")), "$username", url.QueryEscape(first.Text("username")),
		"$created", url.QueryEscape("["+first.Text("createdAt")+","+last.Text("createdAt")+"]"), "$middle", strconv.Itoa(int(size(page))/2)), nil
}

// size is how many resources a search finds.
func size(page e2e.Object) float64 {
	number, _ := page["size"].(float64)
	return number
}

//go:embed scale.sql
var seedStatements string

// seed makes a directory over the interface, fills it in the database, all or
// nothing, and returns its address. Until the end other transactions cannot use the
// tables of accounts.
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
	c := s.client.Setup(ctx)
	directory := c.Post(s.base+"/directories", e2e.Object{"name": unique(name)})
	if c.Err != nil {
		return "", fmt.Errorf("make a directory: %w", c.Err)
	}
	maps.Copy(config.RuntimeParams, map[string]string{"search_path": "directory", "bench.count": strconv.Itoa(count),
		"bench.tenant": uuid(directory.Object("tenant")), "bench.directory": uuid(directory)})
	began := time.Now()
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		log.Printf("%s: %s in %.1f s", name, n.Message, time.Since(began).Seconds())
	}
	db, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return "", fmt.Errorf("connect to the directory service's database: %w", err)
	}
	defer db.Close(context.WithoutCancel(ctx))
	if _, err = db.Exec(ctx, seedStatements); err == nil { // without arguments they are one transaction
		_, err = db.Exec(ctx, "VACUUM (ANALYZE) accounts, account_values, account_counts, custom_data")
	}
	if err != nil {
		return "", fmt.Errorf("fill the directory: %w", err)
	}
	return directory.Href(), nil
}

// uuid is the database's form of a resource's id; it is empty for no id.
func uuid(resource e2e.Object) string {
	v, err := id.Parse(resource.ID())
	if err != nil {
		return ""
	}
	return hex.EncodeToString(v[:])
}
