package directory

import (
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/purge"
	"github.com/doorward/doorward/services/directory/store"
)

const (
	// purgeEvery is the pause between two purges.
	purgeEvery = time.Minute
	// removalGrace is how long after the deletion of a directory no account of it can
	// come any more: longer than a request may take.
	removalGrace = time.Minute
	// batch bounds what one transaction deletes.
	batch = 1000
	// fillBatch bounds the documents that one transaction reads.
	fillBatch = 20
)

// Purge is the worker that deletes what is hidden already: expired password
// resets, sign-ups and counters, and what deleted directories have left. It also writes the
// searchable values of groups whose customData an earlier release stored.
func (s *Service) Purge(ctx context.Context) error {
	return purge.Every(purgeEvery, "purge of deleted and expired rows failed, retrying", func(ctx context.Context) error {
		return s.store.EachShard(ctx, s.purge)
	})(ctx)
}

func (s *Service) purge(ctx context.Context) error {
	drain := func(remove func(*store.Tx) (int64, error)) error { return purge.Drain(ctx, s.store.Tx, remove) }
	return errors.Join(
		drain(func(tx *store.Tx) (int64, error) { return tx.PurgeResets(ctx, s.now(), batch) }),
		drain(func(tx *store.Tx) (int64, error) { return tx.PurgeSignUps(ctx, s.now(), batch) }),
		drain(func(tx *store.Tx) (int64, error) { return s.removeNext(ctx, tx) }),
		drain(func(tx *store.Tx) (int64, error) { return tx.PurgeChecks(ctx, s.now().Add(-checkAge), batch) }),
		drain(func(tx *store.Tx) (int64, error) { return tx.FillGroupValues(ctx, fillBatch) }),
		drain(func(tx *store.Tx) (int64, error) { return tx.PurgeSAMLAssertions(ctx, s.now(), batch) }),
		drain(func(tx *store.Tx) (int64, error) { return tx.PurgeCounts(ctx, s.now(), batch) }),
	)
}

// removeNext deletes some of what a deleted directory has left: its accounts, then
// its groups, each in a transaction of their own, so that no deadlock with
// another transaction is possible.
func (s *Service) removeNext(ctx context.Context, tx *store.Tx) (int64, error) {
	before := s.now().Add(-removalGrace)
	r, err := tx.NextRemoval(ctx, before)
	if errors.Is(err, apierr.NotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	if n, err := s.removeAccounts(ctx, tx, r); err != nil || n > 0 {
		return n, err
	}
	if groups, err := tx.RemoveGroups(ctx, r, batch); err != nil || len(groups) > 0 {
		return int64(len(groups)), err
	}
	return tx.EndRemoval(ctx, r, before)
}

// removeAccounts deletes some of the accounts that a directory has left, and lets
// the other services drop what they hold of them.
func (s *Service) removeAccounts(ctx context.Context, tx *store.Tx, r store.Removal) (int64, error) {
	accounts, err := tx.RemoveAccounts(ctx, r, batch)
	if err != nil || len(accounts) == 0 {
		return 0, err
	}
	return int64(len(accounts)), tx.Emit(ctx, events.AccountsDeleted{Tenant: r.TenantID, Directory: r.DirectoryID, Accounts: accounts})
}
