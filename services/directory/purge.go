package directory

import (
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/purge"
	"github.com/doorward/doorward/services/directory/store"
)

const (
	// PurgeInterval is the time between two purges.
	PurgeInterval = time.Minute
	// removalGrace is the time after the deletion of a directory within which a request that began
	// before can still insert an account into it: longer than a request may take.
	removalGrace = time.Minute
	// endedLinkRetention is the time for which the link of a password reset that was used or has expired still
	// leads to its account, so that its page can lead on (EndedLink in mailedlink.go).
	endedLinkRetention = 30 * 24 * time.Hour
	// BatchSize bounds what one transaction deletes.
	BatchSize = 1000
)

// Purge deletes, in slices or batches, rows that nobody reads any more: expired password resets, sign-ups
// and counters, and the accounts and groups of deleted directories.
func (s *Service) Purge(ctx context.Context) error {
	now := s.now()
	return errors.Join(
		s.store.Purge(ctx, store.ExpiringResets, now.Add(-endedLinkRetention)),
		s.store.Purge(ctx, store.ExpiringSignUps, now),
		s.store.Purge(ctx, store.OperatorEvents, now.Add(-store.OperatorEventAge)),
		purge.Drain(ctx, s.store.Tx, func(tx *store.Tx) (int64, error) { return s.deleteRemaining(ctx, tx) }),
		s.store.Purge(ctx, store.EndedCounts, now),
	)
}

// deleteRemaining deletes a batch of what remains of a deleted directory: its accounts, and then its
// groups in another transaction, which prevents deadlocks with transactions that lock both.
func (s *Service) deleteRemaining(ctx context.Context, tx *store.Tx) (int64, error) {
	if free, err := tx.LockPurge(ctx); err != nil || !free {
		return 0, err
	}
	before := s.now().Add(-removalGrace)
	r, err := tx.NextDirectoryRemoval(ctx, before)
	if errors.Is(err, apierr.NotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	if n, err := s.deleteRemainingAccounts(ctx, tx, r); err != nil || n > 0 {
		return n, err
	}
	if groups, err := tx.DeleteRemainingGroups(ctx, r, BatchSize); err != nil || len(groups) > 0 {
		return int64(len(groups)), err
	}
	return tx.DeleteDirectoryRemoval(ctx, r, before)
}

// deleteRemainingAccounts deletes a batch of the accounts of a deleted directory. By its event the
// other services delete what they store of them.
func (s *Service) deleteRemainingAccounts(ctx context.Context, tx *store.Tx, r store.DirectoryRemoval) (int64, error) {
	accounts, err := tx.DeleteRemainingAccounts(ctx, r, BatchSize)
	return EmitDeleted(ctx, tx, r.TenantID, r.DirectoryID, accounts, err)
}

// EmitDeleted emits the event of a batch of deleted accounts and returns their number.
func EmitDeleted(ctx context.Context, tx *store.Tx, tenant, directory id.ID, accounts []id.ID,
	err error) (int64, error) {
	if err != nil || len(accounts) == 0 {
		return 0, err
	}
	return int64(len(accounts)),
		tx.Emit(ctx, events.AccountsDeleted{Tenant: tenant, Directory: directory, Accounts: accounts})
}
