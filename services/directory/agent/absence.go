package agent

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/purge"
	"github.com/doorward/doorward/services/directory"
	agentstore "github.com/doorward/doorward/services/directory/agent/store"
	"github.com/doorward/doorward/services/directory/store"
)

// An account that its directory server no longer has is absent before it is deleted: a filter that
// was narrowed by mistake, or a right that was lost, erases nobody
// (docs/interface/connectors.md#absent-accounts). This file decides when an account becomes absent,
// the brake on how many may at once (mass deletion), and when an absent account is deleted.

const (
	// leastShare is what any percentage of maxAbsent allows: some people leave a small directory, too.
	leastShare = 10
	// confirmationLifetime is how long an administrator's confirmAbsent waits for its sync.
	confirmationLifetime = time.Hour
)

// absentRetention returns how long absent accounts of an agent are kept. The configuration was
// checked when it was stored.
func absentRetention(config store.AgentConfig) (time.Duration, error) {
	return field.ParseDuration(config.AbsentRetention)
}

// maxAbsent returns how many of a number of accounts one sync may make absent.
func maxAbsent(share store.Share, of int64) int64 {
	if percent, isPercentage := share.Percentage(); isPercentage {
		return max(of*percent/100, leastShare)
	}
	return share.Number()
}

// brake decides whether a page may make accounts absent, before anything of it is written. It
// returns how many accounts the page would make absent where that is too many: more than maxAbsent
// of the configuration, or all, unless an administrator has confirmed it. A complete sync is judged
// by the accounts that none of its pages had, other pages by those that they and the pages before
// them have named as deleted since the last complete sync.
func (s *Service) brake(ctx context.Context, tx *store.Tx, agent store.Agent, begun agentstore.BegunSync,
	in Sync) (held int64, err error) {
	complete := in.Complete.Or(false)
	if complete && begun.Ended || !complete && len(in.DeletedAccounts.Value) == 0 {
		return 0, nil // the last page again, which was let pass, or nothing that vanishes
	}
	of := store.Vanished{
		TenantID: agent.TenantID, DirectoryID: agent.DirectoryID, ExternalIDs: in.DeletedAccounts.Value,
		Before: begun.Number,
	}
	kept, added := []string{}, int64(0)
	if complete {
		of.ExternalIDs = nil
		for _, a := range in.Accounts.Value {
			kept = append(kept, a.ExternalID.Value)
			if a.invalid == nil && a.Email.Given() {
				added++
			}
		}
	}
	vanishing, err := tx.CountVanishing(ctx, of, kept)
	if err != nil {
		return 0, err
	}
	present, former, err := tx.CountPresent(ctx, agent.TenantID, agent.DirectoryID, begun.StartedAt)
	if err != nil {
		return 0, err
	}
	total := vanishing
	if !complete {
		total += agent.Vanished
	}
	confirmed := agent.AbsenceConfirmedUntil != nil && agent.AbsenceConfirmedUntil.After(s.now())
	empties := vanishing >= present && added == 0
	if vanishing > 0 && !confirmed && (total > maxAbsent(agent.Config.MaxAbsent, former) || empties) {
		return vanishing, nil
	}
	if complete {
		agentstore.CountVanished(tx.Tx, agent.Ref(), 0, nil)
	} else {
		agentstore.CountVanished(tx.Tx, agent.Ref(), total, agent.AbsenceConfirmedUntil)
	}
	return 0, nil
}

// heldError logs and counts a sync that the brake has held, and returns its error.
func (s *Service) heldError(ctx context.Context, agent store.Agent, held int64) error {
	syncsHeldTotal.Add(ctx, 1)
	slog.WarnContext(
		ctx, "sync of a directory held: it would make too many accounts absent; see whether the agent still finds all "+
			"accounts, and confirm with confirmAbsent if they have gone",
		"agent", agent.ID.String(), "directory", agent.DirectoryID.String(), "accounts", held)
	return apierr.SyncHeld.Because(
		"the sync would make %d accounts absent, more than maxAbsent (%s) allows, or all; nothing was changed. "+
			"If they have really gone, confirm with POST /agents/%s {\"confirmAbsent\":true}", held,
		agent.Config.MaxAbsent, agent.ID)
}

// endVanished makes a batch of vanished accounts absent, or deletes them where absentRetention is
// zero. It returns their number.
func (s *Service) endVanished(ctx context.Context, tx *store.Tx, config store.AgentConfig,
	of store.Vanished) (int64, error) {
	retention, err := absentRetention(config)
	if err != nil {
		return 0, err
	}
	if retention == 0 {
		accounts, err := tx.DeleteVanishedAccounts(ctx, of, directory.BatchSize)
		return directory.EmitDeleted(ctx, tx, of.TenantID, of.DirectoryID, accounts, err)
	}
	n, enabled, err := tx.MakeAccountsAbsent(ctx, of, s.now(), directory.BatchSize)
	for _, account := range enabled {
		if err := tx.Emit(ctx, events.AccountDisabled{Tenant: of.TenantID, Account: account}); err != nil {
			return 0, err
		}
	}
	return n, err
}

// purgeAbsent deletes the accounts that have been absent for absentRetention of their agent.
func (s *Service) purgeAbsent(ctx context.Context) error {
	directories, err := s.store.DirectoriesWithAbsent(ctx)
	for _, d := range directories {
		retention, invalid := absentRetention(d.Config)
		if invalid != nil {
			err = errors.Join(err, invalid)
			continue
		}
		since := s.now().Add(-retention)
		err = errors.Join(err, purge.Drain(caller.WithTenant(ctx, d.TenantID), s.store.Tx,
			func(tx *store.Tx) (int64, error) {
				if err := tx.LockMirror(ctx, d.DirectoryID); err != nil { // a sync may find them again at this moment
					return 0, err
				}
				accounts, err := tx.DeleteAbsentAccounts(ctx, d.TenantID, d.DirectoryID, since, directory.BatchSize)
				return directory.EmitDeleted(ctx, tx, d.TenantID, d.DirectoryID, accounts, err)
			}))
	}
	return err
}
