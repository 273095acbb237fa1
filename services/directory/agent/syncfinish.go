package agent

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/purge"
	"github.com/doorward/doorward/services/directory"
	agentstore "github.com/doorward/doorward/services/directory/agent/store"
	"github.com/doorward/doorward/services/directory/store"
)

// Refusals returns a page of the entries that the last syncs refused (sync errors).
func (s *Service) Refusals(ctx context.Context, at id.Ref, query list.Query) (list.Page[agentstore.Refusal], error) {
	return list.PageOf(ctx, s.Agent, s.agents.ListRefusals, at, query)
}

// refusalReason is the text with which a refused entry is listed.
func refusalReason(err error) string {
	refusal := apierr.From(err)
	if refusal.Reason != "" {
		return refusal.Reason
	}
	return refusal.Message
}

// refusal makes the record of a refused entry. An invalid one is not kept for a retry: what could be
// decoded of it is not what was sent.
func (s *Service) refusal(kind, key, name, reason string, entry any, invalid error) (agentstore.Refusal, error) {
	if invalid != nil {
		entry = nil
	}
	text, err := json.Marshal(entry)
	return agentstore.Refusal{Kind: kind, ExternalID: key, Name: name, Reason: reason, Entry: text, CreatedAt: s.now()},
		err
}

// SyncWorker is the worker that finishes syncs when all their pages have arrived, and at its start
// those that another process left unfinished.
func (s *Service) SyncWorker(ctx context.Context) error {
	return purge.EveryOr(directory.PurgeInterval, s.syncReceived, "finishing the sync of a directory failed, retrying",
		s.FinishSyncs)(ctx)
}

// FinishSyncs makes absent the accounts, and deletes the groups, that the pages of a complete sync did not
// have (the brake has let it pass, absence.go), and retries refused entries, as the names that they need may
// be free now.
func (s *Service) FinishSyncs(ctx context.Context) error {
	received, err := s.agents.ReceivedSyncs(ctx, s.now(), finishBatch)
	for _, sync := range received {
		err = errors.Join(err, s.finishSync(caller.WithTenant(ctx, sync.TenantID), sync))
	}
	return err
}

func (s *Service) finishSync(ctx context.Context, sync agentstore.ReceivedSync) error {
	agent, err := s.Agent(ctx, id.Ref{Tenant: sync.TenantID, ID: sync.AgentID})
	if err != nil {
		return err
	}
	vanished := store.Vanished{TenantID: sync.TenantID, DirectoryID: sync.DirectoryID, Before: sync.Number}
	inLockedTx := func(ctx context.Context, fn func(*store.Tx) error) error { return s.lockedTx(ctx, agent, fn) }
	err = purge.Drain(ctx, inLockedTx,
		func(tx *store.Tx) (int64, error) { return s.endVanished(ctx, tx, agent.Config, vanished) })
	if err != nil {
		return err
	}
	err = purge.Drain(ctx, inLockedTx,
		func(tx *store.Tx) (int64, error) { return s.deleteVanishedGroups(ctx, tx, vanished) })
	if err != nil {
		return err
	}
	for range maxRetries {
		written, err := s.retryRefusals(ctx, agent, sync.Number)
		if err != nil {
			return err
		}
		if written == 0 {
			break
		}
	}
	return inLockedTx(ctx, func(tx *store.Tx) error {
		if err := tx.DeleteUnconfirmedMembers(ctx, vanished); err != nil {
			return err
		}
		return agentstore.FinishSync(ctx, tx.Tx, sync, s.now())
	})
}

// retryRefusals writes the refused entries of a sync again, and returns how many were not refused
// this time.
func (s *Service) retryRefusals(ctx context.Context, agent store.Agent, number int64) (written int, err error) {
	accounts, err := eachRefusal(ctx, s, agent, agentstore.AccountEntry, number, s.writeAccountBatch)
	if err != nil {
		return 0, err
	}
	groups, err := eachRefusal(ctx, s, agent, agentstore.GroupEntry, number, s.writeGroupBatch)
	return accounts + groups, err
}

// eachRefusal calls write with the refused entries of a kind, in batches.
func eachRefusal[T any](ctx context.Context, s *Service, agent store.Agent, kind string, number int64,
	write func(context.Context, store.Agent, int64, []T) (int, error)) (written int, err error) {
	for after := ""; ; {
		found, err := s.agents.RefusalsAfter(ctx, agent.Ref(), kind, after, number, groupBatch)
		if err != nil || len(found) == 0 {
			return written, err
		}
		entries := make([]T, len(found))
		for i, r := range found {
			if err := json.Unmarshal(r.Entry, &entries[i]); err != nil {
				return written, err
			}
			after = r.ExternalID
		}
		n, err := write(ctx, agent, number, entries)
		if err != nil {
			return written, err
		}
		written += n
	}
}
