package harness

import (
	"context"
	"errors"
	"syscall"

	"github.com/jackc/pgx/v5"
)

// FreezeNotifications stops (SIGSTOP) the sessions of PostgreSQL through which the
// processes of the product listen for notifications: the connections stay open, and
// nothing comes through them, as in a network that is cut. All other sessions go on.
// restore lets those go on too.
func (d *Distributed) FreezeNotifications(ctx context.Context) (restore func() error, err error) {
	var frozen []int
	err = InDatabase(ctx, d.plan.database, func(db *pgx.Conn) (err error) {
		// An error of the query comes with its rows.
		rows, _ := db.Query(ctx, `SELECT pid FROM pg_stat_activity WHERE application_name = 'doorward-listen'`)
		frozen, err = pgx.CollectRows(rows, pgx.RowTo[int])
		return err
	})
	if err == nil && len(frozen) == 0 {
		err = errors.New("no process listens for notifications")
	}
	if err != nil {
		return nil, err
	}
	restore = func() error { return signalAll(frozen, syscall.SIGCONT) }
	if err := signalAll(frozen, syscall.SIGSTOP); err != nil {
		return nil, errors.Join(err, restore())
	}
	return restore, nil
}
