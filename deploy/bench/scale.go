package main

import (
	"context"
	_ "embed"
	"encoding/hex"
	"encoding/json"
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

// searches are queries of the accounts of a directory by their aim: how many times as
// long they may take in the large directory. The searches without an aim find more
// there, or no index serves them. A word with $ stands for a value of the directory.
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
	var address [2]func(query string) string
	for i, count := range []int{smallDirectory, r.large} {
		directory, err := seed(ctx, s, "", s.KeyFile(), "bench of "+strconv.Itoa(count), count)
		if err == nil {
			address[i], err = searchAddress(s.client.Setup(ctx), directory)
		}
		if err != nil {
			return err
		}
	}
	for _, group := range searches {
		for _, query := range strings.Fields(group.queries) {
			var millis [2][]float64
			var pages [2]struct{ Size int }
			for started, round := time.Now(), 0; round < 7 || time.Since(started) < r.searchFor; round++ {
				for turn := range address {
					i := (turn + round) % 2 // neither is always the first
					sent := time.Now()
					err := c.send(http.StatusOK, e2e.Get(address[i](query)))
					millis[i] = append(millis[i], float64(time.Since(sent))/float64(time.Millisecond))
					if err := errors.Join(ctx.Err(), err, json.Unmarshal(c.response.Body(), &pages[i])); err != nil {
						return fmt.Errorf("search %s: %w", query, err)
					}
				}
			}
			small, large := millis[0][2:], millis[1][2:] // the first two fill caches
			name := fmt.Sprintf("?%s: %d, %d", query, pages[0].Size, pages[1].Size)
			r.report.add("scale", name, "ms", group.aim, large...).reference = &row{name: "small", values: small}
		}
	}
	log.Printf("searched directories of %d and %d accounts", smallDirectory, r.large)
	return nil
}

// searchAddress returns the function that puts values of the directory into a query. The
// directory has a thousand accounts at least.
func searchAddress(setup *e2e.Setup, directory string) (func(query string) string, error) {
	page := setup.Get(directory + "/accounts?orderBy=createdAt&offset=200&limit=20")
	if setup.Err != nil {
		return nil, setup.Err
	}
	accounts, size := page.Objects("items"), page["size"].(float64)
	first, last := accounts[0], accounts[19]
	values := strings.NewReplacer("$email", url.QueryEscape(first.Text("email")), "$username",
		url.QueryEscape(first.Text("username")),
		"$created", url.QueryEscape("["+first.Text("createdAt")+","+last.Text("createdAt")+"]"), "$middle", strconv.Itoa(int(size)/2))
	return func(query string) string { return directory + "/accounts?" + values.Replace(query) }, nil
}

//go:embed seed.sql
var seedStatements string

// seed makes a directory over the interface, fills it in the database, all or
// nothing, and returns its address. Until the end other transactions cannot use the
// tables of accounts.
func seed(ctx context.Context, s *system, database, keyFile, name string, count int) (address string, err error) {
	if database == "" {
		if database, err = private.Running(filepath.Join(filepath.Dir(keyFile), "postgres")); err != nil {
			return "", fmt.Errorf("%w; -database names another", err)
		}
	}
	config, err := pgx.ParseConfig(database)
	if err != nil {
		return "", errors.New("-database is no address of a PostgreSQL")
	}
	setup := s.client.Setup(ctx)
	directory := setup.Post(s.base+"/directories", e2e.Object{"name": unique(name)})
	if setup.Err != nil {
		return "", fmt.Errorf("make a directory: %w", setup.Err)
	}
	maps.Copy(config.RuntimeParams, map[string]string{"search_path": "directory", "bench.count": strconv.Itoa(count),
		"bench.tenant": uuid(directory.Object("tenant")), "bench.directory": uuid(directory)})
	started := time.Now()
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		log.Printf("%s: %s in %.1f s", name, n.Message, time.Since(started).Seconds())
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
