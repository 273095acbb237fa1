package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/doorward/doorward/deploy/e2e"
)

// Shard is the name of the second database of Config.Shards.
const Shard = "east"

// addShard makes the second database, on the server of the first.
func (d *Distributed) addShard(ctx context.Context) error {
	address, err := url.Parse(d.plan.database)
	if err != nil {
		return err
	}
	address.Path += "_" + Shard
	name := pgx.Identifier{strings.TrimPrefix(address.Path, "/")}.Sanitize()
	d.plan.shard = address.String()
	return InDatabase(ctx, d.plan.database, func(db *pgx.Conn) error {
		for _, statement := range []string{"DROP DATABASE IF EXISTS " + name, "CREATE DATABASE " + name} {
			if _, err := db.Exec(ctx, statement); err != nil {
				return fmt.Errorf("make a second database: %w", err)
			}
		}
		return nil
	})
}

// namedShard is the value of DATABASE_URLS with the second database.
func namedShard(address string) string {
	if address == "" {
		return ""
	}
	return Shard + "=" + address
}

// MoveTenant moves the tenant of KeyFile to another database, by the command doorward tenant
// move.
func (d *Distributed) MoveTenant(ctx context.Context, to string) error {
	command, err := d.MoveCommand(ctx, to)
	if err != nil {
		return err
	}
	out, err := command.CombinedOutput()
	if err != nil {
		return fmt.Errorf("move the tenant: %w\n%s", err, out)
	}
	if !bytes.Contains(out, []byte("is in "+to)) {
		return errors.New("the command does not say where the tenant is: " + string(out))
	}
	return nil
}

// MoveCommand is the command of MoveTenant.
func (d *Distributed) MoveCommand(ctx context.Context, to string) (*exec.Cmd, error) {
	client, err := e2e.OpenClient(d.KeyFile())
	if err != nil {
		return nil, err
	}
	defer client.HTTP.CloseIdleConnections()
	tenant, err := client.TenantKey(ctx)
	if err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, filepath.Join(d.config.Bin, "doorward"), "tenant", "move", "--tenant", tenant, "--to", to)
	r := &router{from: "operator", route: d.config.Route}
	command.Env = append(d.Settings(), "DATABASE_URL="+r.url("postgres", d.plan.database),
		"DATABASE_URLS="+namedShard(r.url("postgres", d.plan.shard)))
	return command, r.err
}

// tablesOfAllDatabases are the tables in which a tenant may have rows in a database that is not its own.
var tablesOfAllDatabases = []string{
	"application.dns_label_routes", "idsite.id_site_domains", "oauth.api_key_routes", // names that lead to the tenant
	"directory.tenants",               // with its key
	"directory.sign_ups",              // of no tenant yet
	"outbox",                          // its events are sent from there
	"closed_tenants", "tenant_shards", // where it is
}

// CheckShards returns an error that names each table of a database with rows of a tenant
// that is in the other one: a query went to the wrong database.
func (d *Distributed) CheckShards(ctx context.Context) error {
	return InDatabase(ctx, d.plan.database, func(main *pgx.Conn) error { // errors of queries come with their rows
		rows, _ := main.Query(ctx, `SELECT table_schema || '.' || table_name FROM information_schema.columns
			WHERE column_name = 'tenant_id' AND table_schema || '.' || table_name <> ALL ($1) AND table_name <> ALL ($1)`, tablesOfAllDatabases)
		tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return err
		}
		if len(tables) < 40 {
			return fmt.Errorf("only %d tables were found", len(tables))
		}
		rows, _ = main.Query(ctx, `SELECT tenant_id FROM directory.tenant_shards`)
		tenants, err := pgx.CollectRows(rows, pgx.RowTo[[16]byte])
		if err == nil && len(tenants) == 0 {
			err = errors.New("no tenant is in the second database")
		}
		for _, table := range tables {
			var n int
			if failure := main.QueryRow(ctx, `SELECT count(*) FROM `+table+` WHERE tenant_id = ANY ($1)`, tenants).Scan(&n); failure != nil {
				return errors.Join(err, failure)
			}
			if n > 0 {
				err = errors.Join(err, fmt.Errorf("%s has %d rows of a tenant that is in the other database", table, n))
			}
		}
		return err
	})
}
