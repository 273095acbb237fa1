package pg

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/doorward/doorward/pkg/secure"
)

func TestTheFormsOfTheConnectionString(t *testing.T) {
	t.Parallel()
	several, err := Config{URL: "postgres://u:p@one:5432,two:5433/db?target_session_attrs=read-write&sslmode=require"}.parse()
	if err != nil {
		t.Fatal(err)
	}
	c := several.pool.ConnConfig
	if several.pooled || c.Host != "one" || len(c.Fallbacks) != 1 || c.Fallbacks[0].Host != "two" || c.ConnectTimeout != connectTimeout ||
		c.ValidateConnect == nil {
		t.Errorf("several hosts are read as %s, %v, %s", c.Host, c.Fallbacks, c.ConnectTimeout)
	}
	given, err := Config{URL: "postgres://u:p@one/db?connect_timeout=1"}.parse()
	if err != nil || given.pool.ConnConfig.ConnectTimeout.Seconds() != 1 {
		t.Errorf("connect_timeout=1 is read as %v (%v)", given.pool, err)
	}
}

func TestAPoolerIsPassedByWhereASessionIsNeeded(t *testing.T) {
	t.Parallel()
	at, err := Config{URL: "postgres://u:p%3F@bouncer:6432/directory?sslmode=disable&direct=one:5433,two/doorward"}.parse()
	if err != nil {
		t.Fatal(err)
	}
	pooled, direct := at.pool.ConnConfig, at.direct.ConnConfig
	if !at.pooled || pooled.Host != "bouncer" || pooled.Port != 6432 || pooled.Database != "directory" || len(pooled.Fallbacks) != 0 ||
		pooled.DefaultQueryExecMode != pgx.QueryExecModeCacheDescribe || len(pooled.RuntimeParams) != 0 {
		t.Errorf("the pooler is read as %s:%d/%s, mode %s, %v",
			pooled.Host, pooled.Port, pooled.Database, pooled.DefaultQueryExecMode, pooled.RuntimeParams)
	}
	if direct.Host != "one" || direct.Port != 5433 || direct.Database != "doorward" || direct.Password != "p?" ||
		direct.DefaultQueryExecMode != pgx.QueryExecModeCacheStatement || len(direct.Fallbacks) != 1 ||
		direct.Fallbacks[0].Host != "two" || direct.Fallbacks[0].Port != 5432 {
		t.Errorf("the server is read as %s:%d/%s, mode %s, %v",
			direct.Host, direct.Port, direct.Database, direct.DefaultQueryExecMode, direct.Fallbacks)
	}
	at, err = Config{URL: "postgres://u:p@bouncer/directory?sslmode=disable&direct=one&default_query_exec_mode=cache_statement"}.parse()
	if err != nil || at.pool.ConnConfig.DefaultQueryExecMode != pgx.QueryExecModeCacheStatement ||
		at.direct.ConnConfig.Database != "directory" {
		t.Errorf("the mode of the connection string does not hold, or its database: %v", err)
	}
}

func TestWrongConnectionStringsAreRefusedWithoutTheirPassword(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"postgres://u:Changeme1@one:port/db":                                         "DATABASE_URL",
		"postgres://u:Changeme1@one/db?sslmode=nonsense":                             "DATABASE_URL",
		"postgres://u:Changeme1@one/db?sslmode=verify-full&sslrootcert=/none/ca.pem": "/none/ca.pem",
		"postgres://u:Changeme1@one/db?direct=two:port":                              "DATABASE_URL",
	} {
		_, err := Config{URL: secure.Secret(text)}.parse()
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "Changeme1") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
