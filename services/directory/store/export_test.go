package store

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/list/listsql"
	"github.com/doorward/doorward/pkg/pg"
)

// Explain returns the plans of the statements by which ListAccounts reads a page
// of one directory, where there is no way without an index but a detour.
func (s *Store) Explain(ctx context.Context, tenant, directory id.ID, query list.Query) (plans string, err error) {
	err = s.db.InTx(ctx, func(tx *pg.Tx) error {
		if _, err := pg.Exec(ctx, tx, `SET LOCAL enable_seqscan = off`); err != nil {
			return err
		}
		e := &explaining{Tx: tx}
		_, err := listsql.SelectParts[directoryapi.Account](ctx, e, accountsOf(tenant, []id.ID{directory}, nil), query)
		plans = strings.Join(e.plans, "\n")
		return err
	})
	return plans, err
}

// explaining notes the plan of every query before it runs.
type explaining struct {
	*pg.Tx
	plans []string
}

func (e *explaining) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	lines, err := pg.Values[string](ctx, e.Tx, "EXPLAIN "+sql, args...)
	if err != nil {
		return nil, err
	}
	e.plans = append(e.plans, strings.Join(lines, "\n"))
	return e.Tx.Query(ctx, sql, args...)
}
