package customdatastore_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/clocktest"
	"github.com/doorward/doorward/pkg/customdata"
	"github.com/doorward/doorward/pkg/customdata/customdatastore"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	"github.com/doorward/doorward/pkg/secure"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var owners = fstest.MapFS{"20260101000001_owners.sql": {Data: []byte(`-- +goose Up
CREATE TABLE owners (tenant_id uuid NOT NULL, id uuid NOT NULL, created_at timestamptz NOT NULL, PRIMARY KEY (tenant_id, id));
CREATE TABLE houses (tenant_id uuid PRIMARY KEY, created_at timestamptz NOT NULL);
CREATE TABLE notes (text text NOT NULL);`)}}

func config(url secure.Secret) pg.Config {
	return pg.Config{URL: url, Schema: "owner", MaxConns: 20, Migrations: []fs.FS{customdatastore.Migrations(), owners}}
}

// bench is a database with one owner.
type bench struct {
	*testing.T
	customdatastore.Store
	owner   id.Ref
	created time.Time
	clock   clocktest.Clock
}

// later moves the clock.
func (b *bench) later() time.Time {
	b.clock.Move(time.Hour)
	return b.clock.Now()
}

func open(t *testing.T) *bench {
	t.Helper()
	b := &bench{T: t, created: clocktest.Start}
	b.Store = customdatastore.Store{DB: pgtest.Open(t, config), Now: b.clock.Now, Table: "owners", ID: "id"}
	b.owner = b.add(id.New(b.created))
	b.later()
	return b
}

// add makes another owner.
func (b *bench) add(tenant id.ID) id.Ref {
	b.Helper()
	owner := id.Ref{Tenant: tenant, ID: id.New(b.clock.Now())}
	b.exec(`INSERT INTO owners (tenant_id, id, created_at) VALUES ($1, $2, $3)`, owner.Tenant, owner.ID, b.clock.Now())
	return owner
}

func (b *bench) exec(sql string, args ...any) {
	b.Helper()
	if _, err := pg.Exec(b.Context(), b.DB, sql, args...); err != nil {
		b.Fatal(err)
	}
}

// want checks what is read of the owner.
func (b *bench) want(document string, modified time.Time) {
	b.Helper()
	r, err := b.Read(b.Context(), b.owner)
	if err != nil || string(r.Document) != document || !r.CreatedAt.Equal(b.created) || !r.ModifiedAt.Equal(modified) {
		b.Errorf("read %+v, %v; want %s of %v", r, err, document, modified)
	}
}

func (b *bench) merge(in string) customdata.Resource {
	b.Helper()
	r, err := b.Merge(b.Context(), b.owner, parse(b, in))
	if err != nil {
		b.Fatal(err)
	}
	return r
}

func (b *bench) rows() int {
	b.Helper()
	n, err := pg.Value[int](b.Context(), b.DB, `SELECT count(*) FROM custom_data`)
	if err != nil {
		b.Fatal(err)
	}
	return n
}

func TestTheDocumentOfAnOwner(t *testing.T) {
	b := open(t)
	ctx := t.Context()
	b.want(`{}`, b.created)

	b.merge(`{}`)
	b.merge(`{"href":"x"}`)
	if err := errors.Join(b.Clear(ctx, b.owner), b.DeleteKey(ctx, b.owner, "a")); err != nil {
		t.Fatal(err)
	}
	b.want(`{}`, b.created)
	if n := b.rows(); n != 0 {
		t.Errorf("%d rows before anything was kept", n)
	}

	first := b.later()
	if r := b.merge(`{"a":1,"b":"\u0000"}`); r.Document != `{"a":1,"b":"\u0000"}` || !r.CreatedAt.Equal(b.created) || !r.ModifiedAt.Equal(first) {
		t.Errorf("merged to %+v", r)
	}
	b.want(`{"a":1,"b":"\u0000"}`, first)

	second := b.later()
	b.merge(`{"c":1e100000,"a":null}`)
	b.want(`{"a":null,"b":"\u0000","c":1e100000}`, second)

	b.later()
	b.merge(`{}`)
	if err := b.DeleteKey(ctx, b.owner, "absent"); err != nil {
		t.Fatal(err)
	}
	b.want(`{"a":null,"b":"\u0000","c":1e100000}`, second)

	third := b.later()
	if err := b.DeleteKey(ctx, b.owner, "b"); err != nil {
		t.Fatal(err)
	}
	b.want(`{"a":null,"c":1e100000}`, third)

	fourth := b.later()
	if err := b.Clear(ctx, b.owner); err != nil {
		t.Fatal(err)
	}
	b.want(`{}`, fourth)
	b.later()
	if err := b.Clear(ctx, b.owner); err != nil {
		t.Fatal(err)
	}
	b.want(`{}`, fourth)
	b.merge(`{"a":2}`)
	b.want(`{"a":2}`, b.clock.Now())
}

func TestWhatIsRefusedChangesNothing(t *testing.T) {
	b := open(t)
	b.merge(`{"a":1}`)
	before := b.clock.Now()
	b.later()
	large := make([]byte, customdata.MaxSize-len(`{"l":""}`))
	for i := range large {
		large[i] = 'x'
	}
	if _, err := b.Merge(t.Context(), b.owner, parse(t, `{"l":"`+string(large)+`"}`)); !errors.Is(err, apierr.CustomDataSize) {
		t.Errorf("over the limit: %v", err)
	}
	b.want(`{"a":1}`, before)
}

func TestOwnersThatAreNotThere(t *testing.T) {
	b := open(t)
	b.merge(`{"a":1}`)
	before := b.clock.Now()
	b.later()
	stranger := b.add(id.New(b.clock.Now()))
	for what, owner := range map[string]id.Ref{
		"no owner": {Tenant: b.owner.Tenant, ID: id.New(b.clock.Now())}, "another tenant's": {Tenant: stranger.Tenant, ID: b.owner.ID},
	} {
		_, read := b.Read(t.Context(), owner)
		_, merged := b.Merge(t.Context(), owner, parse(t, `{"a":2}`))
		_, nothing := b.Merge(t.Context(), owner, "")
		for _, err := range []error{read, merged, nothing, b.Clear(t.Context(), owner), b.DeleteKey(t.Context(), owner, "a")} {
			if !errors.Is(err, apierr.NotFound) {
				t.Errorf("%s returns %v", what, err)
			}
		}
	}
	b.want(`{"a":1}`, before)
	if n := b.rows(); n != 1 {
		t.Errorf("the table has %d rows, want 1", n)
	}
}

func TestTenantsOwnTheirOwn(t *testing.T) {
	b := open(t)
	b.Table, b.ID = "houses", "tenant_id"
	b.exec(`INSERT INTO houses (tenant_id, created_at) VALUES ($1, $2)`, b.owner.Tenant, b.created)
	b.owner.ID = b.owner.Tenant
	b.merge(`{"a":1}`)
	b.want(`{"a":1}`, b.clock.Now())
}

func TestParallelMergesKeepEveryKey(t *testing.T) {
	b := open(t)
	var all sync.WaitGroup
	failures := make(chan error, 20)
	for i := range 20 {
		all.Go(func() {
			_, err := b.Merge(t.Context(), b.owner, customdata.Document(fmt.Sprintf(`{"k%d":%d}`, i, i)))
			failures <- err
		})
	}
	all.Wait()
	close(failures)
	for err := range failures {
		if err != nil {
			t.Error(err)
		}
	}
	r, err := b.Read(t.Context(), b.owner)
	if err != nil {
		t.Fatal(err)
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal([]byte(r.Document), &keys); err != nil || len(keys) != 20 {
		t.Errorf("%d keys are left: %s", len(keys), r.Document)
	}
}

func TestAMergeWaitsForTheRemovalOfItsOwner(t *testing.T) {
	b := open(t)
	merged := make(chan error)
	err := b.DB.InTx(t.Context(), func(tx *pg.Tx) error {
		if _, err := pg.Exec(t.Context(), tx, `DELETE FROM owners WHERE tenant_id = $1 AND id = $2`, b.owner.Tenant, b.owner.ID); err != nil {
			return err
		}
		go func() {
			_, err := b.Merge(t.Context(), b.owner, `{"a":1}`)
			merged <- err
		}()
		for waiting := false; !waiting; {
			var err error
			if waiting, err = pg.Value[bool](t.Context(), b.DB, `SELECT EXISTS (SELECT 1 FROM pg_locks JOIN pg_stat_activity USING (pid)
				WHERE NOT granted AND datname = current_database())`); err != nil {
				return err
			}
		}
		return customdatastore.Remove(t.Context(), tx, b.owner.Tenant, b.owner.ID)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-merged; !errors.Is(err, apierr.NotFound) {
		t.Errorf("the merge returned %v", err)
	}
	if n := b.rows(); n != 0 {
		t.Errorf("%d rows without owner", n)
	}
}

func TestRemoveForgetsOfTheTenantOnly(t *testing.T) {
	b := open(t)
	b.merge(`{"a":1}`)
	other := b.add(b.owner.Tenant)
	if _, err := b.Merge(t.Context(), other, `{"b":2}`); err != nil {
		t.Fatal(err)
	}
	if err := customdatastore.Remove(t.Context(), b.DB, id.New(b.clock.Now()), b.owner.ID, other.ID); err != nil || b.rows() != 2 {
		t.Errorf("another tenant's call: %v, %d rows are left", err, b.rows())
	}
	if err := customdatastore.Remove(t.Context(), b.DB, b.owner.Tenant); err != nil || b.rows() != 2 {
		t.Errorf("a call for nobody: %v, %d rows are left", err, b.rows())
	}
	if err := customdatastore.Remove(t.Context(), b.DB, b.owner.Tenant, b.owner.ID); err != nil || b.rows() != 1 {
		t.Errorf("a call for one: %v, %d rows are left", err, b.rows())
	}
}

func TestWhatFollowsAChangeIsCommittedWithIt(t *testing.T) {
	b := open(t)
	fail := false
	b.Changed = func(ctx context.Context, tx pg.Querier, owner id.Ref, document customdata.Document) error {
		if _, err := pg.Exec(ctx, tx, `INSERT INTO notes (text) VALUES ($1)`, owner.ID.String()+string(document)); err != nil {
			return err
		}
		if fail {
			return apierr.Invalid
		}
		return nil
	}
	b.merge(`{"a":1,"b":2}`)
	if err := errors.Join(b.DeleteKey(t.Context(), b.owner, "a"), b.DeleteKey(t.Context(), b.owner, "a"), b.Clear(t.Context(), b.owner)); err != nil {
		t.Fatal(err)
	}
	fail = true
	if _, err := b.Merge(t.Context(), b.owner, `{"c":3}`); !errors.Is(err, apierr.Invalid) {
		t.Errorf("the failure of what follows is %v", err)
	}
	b.want(`{}`, b.clock.Now())
	notes, err := pg.All[struct{ Text string }](t.Context(), b.DB, `SELECT text FROM notes ORDER BY text`)
	if err != nil {
		t.Fatal(err)
	}
	owner := b.owner.ID.String()
	if got, want := fmt.Sprint(notes), fmt.Sprintf(`[{%s{"a":1,"b":2}} {%s{"b":2}} {%s{}}]`, owner, owner, owner); got != want {
		t.Errorf("the notes are %s; want %s", got, want)
	}
}

func TestMergeInTheTransactionOfTheOwner(t *testing.T) {
	b := open(t)
	for _, c := range []struct{ in, want string }{{`{}`, `{}`}, {`{"a":1}`, `{"a":1}`}, {``, `{"a":1}`}, {`{"b":2}`, `{"a":1,"b":2}`}} {
		err := b.DB.InTx(t.Context(), func(tx *pg.Tx) error {
			got, err := customdatastore.Merge(t.Context(), tx, b.owner.Tenant, b.owner.ID, customdata.Document(c.in), b.clock.Now())
			if string(got) != c.want {
				t.Errorf("merged %q to %q; want %q", c.in, got, c.want)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		b.want(c.want, map[bool]time.Time{true: b.created, false: b.clock.Now()}[c.want == `{}`])
	}
}

func parse(t testing.TB, text string) customdata.Document {
	t.Helper()
	d, err := customdata.Parse([]byte(text))
	if err != nil {
		t.Fatalf("Parse(%.100q) = %v", text, err)
	}
	return d
}
