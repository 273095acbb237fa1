package pg_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

func TestNamedArguments(t *testing.T) {
	type Times struct{ CreatedAt time.Time }
	type shop struct {
		ID     int
		Name   *string `db:"label"`
		Secret string  `db:"-"`
		Times
	}
	now := time.Now()
	name := "Shop"
	for _, c := range []struct {
		sql, want string
		args      []any
	}{
		{`SELECT @id, @created_at, @id`, `SELECT $1, $2, $1`, []any{1, now}},
		{`SELECT @label WHERE '{}' @> '{}' AND @kind = @id`, `SELECT $1 WHERE '{}' @> '{}' AND $2 = $3`, []any{&name, "other", 1}},
		{pg.Insert("shops", "s.id,\n\ts.label"), `INSERT INTO shops (id, label) VALUES ($1, $2)`, []any{1, &name}},
		{`UPDATE shops SET ` + pg.Set("label, kind"), `UPDATE shops SET label = $1, kind = $2`, []any{&name, "other"}},
	} {
		named := pg.Named(pg.Args{"kind": "other"}, shop{ID: 1, Name: &name, Times: Times{now}})
		sql, args, err := named.RewriteQuery(t.Context(), nil, c.sql, nil)
		if err != nil || sql != c.want || !slices.Equal(args, c.args) {
			t.Errorf("%s is %s with %v, %v; want %s with %v", c.sql, sql, args, err, c.want, c.args)
		}
	}
	for _, sql := range []string{`SELECT @missing`, `SELECT @name`, `SELECT @secret`} {
		if _, _, err := pg.Named(shop{}).RewriteQuery(t.Context(), nil, sql, nil); err == nil || !strings.Contains(err.Error(), "has no value") {
			t.Errorf("the arguments of %s are accepted: %v", sql, err)
		}
	}
}

// A statement takes its arguments by name wherever it runs: alone, in a transaction, queued, and in a batch.
func TestStatementsTakeNamedArguments(t *testing.T) {
	t.Parallel()
	db, _ := open(t)
	noteOf := func(text string) pg.NamedArgs { return pg.Named(note{id.New(time.Now()), id.New(time.Now()), text}) }
	insert := pg.Insert("notes", "tenant_id, id, text")
	if _, err := pg.Exec(t.Context(), db, insert, noteOf("alone")); err != nil {
		t.Fatal(err)
	}
	err := db.InTx(t.Context(), func(tx *pg.Tx) error {
		tx.Queue(insert, noteOf("queued"))
		_, err := pg.Exec(t.Context(), tx, insert, noteOf("in a transaction"))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var batch pg.Batch
	var found []note
	pg.QueueAll(&batch, &found, `SELECT tenant_id, id, text FROM notes WHERE text <> @text ORDER BY text`, pg.Named(note{Text: "alone"}))
	if err := pg.ExecBatch(t.Context(), db, &batch); err != nil || len(found) != 2 || found[1].Text != "queued" {
		t.Errorf("the statements have written %+v, %v", found, err)
	}
}
