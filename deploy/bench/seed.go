package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg/private"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/directory/seed"
)

// seedCommand fills a directory of a deployment with generated accounts.
const seedCommand = "seed"

// databaseEnv names the database of a deployment that is not standalone, as it
// does for the directory service.
const databaseEnv = "DATABASE_URL"

// seedDirectory is the command.
func seedDirectory(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("bench seed", flag.ContinueOnError)
	flags.SetOutput(os.Stderr)
	keyFile := flags.String("apikey", cmp.Or(os.Getenv(keyEnv), ".doorward/apikey.json"), "`apikey.json` of the deployment")
	database := flags.String("database", os.Getenv(databaseEnv), "`address` of its PostgreSQL; empty: the one of a standalone with its data beside the apikey.json (also by "+databaseEnv+")")
	count := flags.Int("accounts", 1_000_000, "how many accounts to generate")
	name := flags.String("name", "seeded "+time.Now().UTC().Format(time.DateTime), "name of the directory that is made for them")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 || *count < 1 {
		return errors.New("bench seed takes flags only, and -accounts must be at least 1; -h lists them")
	}
	key, err := e2e.ReadKey(*keyFile)
	if err != nil {
		return err
	}
	client, err := e2e.NewClient(key)
	if err != nil {
		return err
	}
	began := time.Now()
	tell := func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, "seed %5.1f s  %s\n", time.Since(began).Seconds(), fmt.Sprintf(format, args...))
	}
	s, err := openSeeder(ctx, *database, *keyFile)
	if err != nil {
		return err
	}
	defer s.Close()
	directory, err := fillDirectory(ctx, client, s, *name, *count, tell)
	if err != nil {
		return err
	}
	tell("vacuuming")
	if err := s.Settle(ctx); err != nil {
		return err
	}
	tell("done")
	fmt.Fprintln(out, directory)
	return nil
}

// openSeeder connects to the database of a deployment: an address, or the
// private one of the standalone that wrote the apikey.json.
func openSeeder(ctx context.Context, database, keyFile string) (*seed.Seeder, error) {
	if database == "" {
		var err error
		if database, err = private.Running(filepath.Join(filepath.Dir(keyFile), "postgres")); err != nil {
			return nil, fmt.Errorf("%w; -database names another", err)
		}
	}
	return seed.Open(ctx, secure.Secret(database), time.Now())
}

// fillDirectory makes a directory over the interface, fills it in the database,
// and gives its address. It tells every few seconds how far it is.
func fillDirectory(ctx context.Context, client *e2e.Client, s *seed.Seeder, name string, count int, tell func(string, ...any)) (address string, err error) {
	site := &site{client: client}
	directory, err := site.create(ctx, client.Key.BaseURL+"/directories", e2e.Object{"name": name})
	if err != nil {
		return "", fmt.Errorf("make a directory: %w", err)
	}
	tenant, err := id.Parse(directory.Object("tenant").ID())
	if err != nil {
		return "", fmt.Errorf("read the directory's tenant: %w", err)
	}
	own, err := id.Parse(directory.ID())
	if err != nil {
		return "", fmt.Errorf("read the directory's id: %w", err)
	}
	began, told := time.Now(), time.Now()
	err = s.Fill(ctx, tenant, own, count, func(done int) {
		if time.Since(told) < 5*time.Second && done < count {
			return
		}
		told = time.Now()
		rate := float64(done) / time.Since(began).Seconds()
		left := time.Duration(float64(count-done) / rate * float64(time.Second)).Round(time.Second)
		tell("%s: %d of %d accounts, %.0f a second, %s left", name, done, count, rate, left)
	})
	return directory.Href(), err
}
