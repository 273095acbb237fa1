package directory

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/purge"
	"github.com/doorward/doorward/services/directory/store"
)

// Refusals returns a page of the entries that the last syncs could not take.
func (s *Service) Refusals(ctx context.Context, at id.Ref, query list.Query) (list.Page[store.Refusal], error) {
	return list.PageOf(ctx, s.Agent, s.store.ListRefusals, at, query)
}

// reasonOf is what a refused entry is listed with.
func reasonOf(err error) string {
	refusal := apierr.From(err)
	if refusal.Reason != "" {
		return refusal.Reason
	}
	return refusal.Message
}

// refusal makes the record of an entry that is not taken.
func (s *Service) refusal(kind, key, name, reason string, entry any) (store.Refusal, error) {
	text, err := json.Marshal(entry)
	return store.Refusal{Kind: kind, ExternalID: key, Name: name, Reason: reason, Entry: text, CreatedAt: s.now()}, err
}

// SyncWorker finishes syncs when their last page has come, and at its start those
// that another process left.
func (s *Service) SyncWorker(ctx context.Context) error {
	return purge.EveryOr(purgeEvery, s.syncEnded, "finishing the sync of a directory failed, retrying", s.FinishSyncs)(ctx)
}

// FinishSyncs removes what complete syncs did not hold, and tries refused entries
// again: the names that they want may be free now.
func (s *Service) FinishSyncs(ctx context.Context) error {
	return s.store.EachShard(ctx, func(ctx context.Context) error {
		ended, err := s.store.EndedSyncs(ctx, s.now(), removingBatch)
		for _, r := range ended {
			err = errors.Join(err, s.finishSync(caller.WithTenant(ctx, r.TenantID), r))
		}
		return err
	})
}

func (s *Service) finishSync(ctx context.Context, r store.EndedSync) error {
	agent, err := s.Agent(ctx, id.Ref{Tenant: r.TenantID, ID: r.AgentID})
	if err != nil {
		return err
	}
	absent := store.Absent{TenantID: r.TenantID, DirectoryID: r.DirectoryID, Before: r.Number}
	err = purge.Drain(ctx, s.store.Tx, func(tx *store.Tx) (int64, error) { return s.removeAbsentAccounts(ctx, tx, absent) })
	if err != nil {
		return err
	}
	err = purge.Drain(ctx, s.store.Tx, func(tx *store.Tx) (int64, error) { return s.removeAbsentGroups(ctx, tx, absent) })
	if err != nil {
		return err
	}
	for range maxRetries {
		taken, err := s.retryRefusals(ctx, agent, r.Number)
		if err != nil {
			return err
		}
		if taken == 0 {
			break
		}
	}
	return s.store.Tx(ctx, func(tx *store.Tx) error { return tx.FinishSync(ctx, r, s.now()) })
}

// retryRefusals tries the refused entries of a sync again and returns how many
// were taken.
func (s *Service) retryRefusals(ctx context.Context, agent store.Agent, number int64) (taken int, err error) {
	accounts, err := eachRefusal(ctx, s, agent, store.AccountEntry, number, s.takeAccounts)
	if err != nil {
		return 0, err
	}
	groups, err := eachRefusal(ctx, s, agent, store.GroupEntry, number, s.takeGroups)
	return accounts + groups, err
}

func eachRefusal[T any](ctx context.Context, s *Service, agent store.Agent, kind string, number int64,
	take func(context.Context, store.Agent, int64, []T) (int, error)) (taken int, err error) {
	for after := ""; ; {
		found, err := s.store.RefusalsAfter(ctx, agent, kind, after, number, groupBatch)
		if err != nil || len(found) == 0 {
			return taken, err
		}
		entries := make([]T, len(found))
		for i, r := range found {
			if err := json.Unmarshal(r.Entry, &entries[i]); err != nil {
				return taken, err
			}
			after = r.ExternalID
		}
		n, err := take(ctx, agent, number, entries)
		if err != nil {
			return taken, err
		}
		taken += n
	}
}
