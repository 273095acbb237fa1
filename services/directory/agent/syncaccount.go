package agent

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure/pwhash"
	"github.com/doorward/doorward/services/directory"
	agentstore "github.com/doorward/doorward/services/directory/agent/store"
	"github.com/doorward/doorward/services/directory/store"
)

// endDeletedAccounts makes the accounts with these external ids absent, which the source has deleted,
// and deletes their refusals.
func (s *Service) endDeletedAccounts(ctx context.Context, agent store.Agent, externalIDs []string) error {
	return s.lockedTx(ctx, agent, func(tx *store.Tx) error {
		agentstore.DeleteRefusals(tx.Tx, agent.Ref(), agentstore.AccountEntry, externalIDs)
		_, err := s.endVanished(ctx, tx, agent.Config,
			store.Vanished{TenantID: agent.TenantID, DirectoryID: agent.DirectoryID,
				ExternalIDs: externalIDs})
		return err
	})
}

// accountBatch is a batch of accounts of a sync, classified by what is to be done.
type accountBatch struct {
	policy        store.RegistrationPolicy     // of the directory: the domains that it may speak for
	writes        []store.MirroredAccountWrite // new and changed accounts, to be written
	entries       []SyncAccount                // those of writes, as they were sent
	known         map[string]store.MirroredAccount
	unchanged     []string // external ids of accounts that stay as they are
	refused       []agentstore.Refusal
	statuses      []store.MirroredAccountWrite // accounts of refused entries whose status is written all the same
	newlyDisabled []id.ID
}

// writeAccountBatch writes accounts of a page, at most directory.BatchSize, and returns how many were not
// refused.
func (s *Service) writeAccountBatch(ctx context.Context, agent store.Agent, number int64,
	in []SyncAccount) (written int, err error) {
	in = lastByKey(in, func(a SyncAccount) string { return a.ExternalID.Value })
	ids := make([]string, len(in))
	for i, a := range in {
		ids[i] = a.ExternalID.Value
	}
	policy, err := s.store.RegistrationPolicy(ctx, agent.TenantID, agent.DirectoryID)
	if err != nil {
		return 0, err
	}
	err = s.lockedTx(ctx, agent, func(tx *store.Tx) error {
		found, err := tx.MirroredAccounts(ctx, agent.TenantID, agent.DirectoryID, ids)
		if err != nil {
			return err
		}
		batch := accountBatch{policy: policy, known: make(map[string]store.MirroredAccount, len(found))}
		for _, m := range found {
			batch.known[m.ExternalID] = m
		}
		for _, a := range in {
			if err := s.classifyAccount(agent, &batch, a); err != nil {
				return err
			}
		}
		if err := s.writeAccounts(ctx, tx, agent, number, &batch); err != nil {
			return err
		}
		written = len(in) - len(batch.refused)
		return nil
	})
	return written, err
}

// classifyAccount adds one account of a page to those that are unchanged, to be written, or
// refused. Conflicts of names are resolved later, by writeAccounts.
func (s *Service) classifyAccount(agent store.Agent, batch *accountBatch, in SyncAccount) error {
	text, err := json.Marshal(in)
	if err != nil {
		return err
	}
	sum := digest(text)
	known, isKnown := batch.known[in.ExternalID.Value]
	if isKnown && in.invalid == nil && bytes.Equal(known.Digest, sum) {
		batch.unchanged = append(batch.unchanged, in.ExternalID.Value)
		return nil
	}
	now := s.now()
	account := store.MirroredAccountWrite{MirroredAccount: known, Account: directoryapi.Account{
		TenantID: agent.TenantID, ID: known.AccountID, DirectoryID: agent.DirectoryID,
		EmailVerificationStatus: directoryapi.Verified, CreatedAt: now, ModifiedAt: now,
	}}
	if !isKnown {
		account.Account.ID, account.AssignedStatus = id.New(now), directoryapi.Enabled
	}
	account.ExternalID, account.Digest, account.Disabled = in.ExternalID.Value, sum,
		in.Disabled.Or(in.invalid != nil && known.Disabled)
	account.PasswordHash = s.importedHash(agent, in.PasswordHash)
	account.Account.Status = account.AssignedStatus
	if account.Disabled {
		account.Account.Status = directoryapi.Disabled
	}
	username := in.Username
	username.Present = true // without a user name, the email is the user name
	username.Null = !in.Username.Given()
	refused := cmp.Or(in.invalid, directory.ApplyAccount(&account.Account, directoryapi.NewAccount{
		Username: username, Email: in.Email, GivenName: in.GivenName, MiddleName: in.MiddleName, Surname: in.Surname,
	}, store.RegistrationPolicy{}, true))
	if refused == nil {
		refused = directory.CheckMirrorDomain(batch.policy, account.Account.Email)
	}
	if account.Account.Status == "" {
		account.Account.Status = account.AssignedStatus
	}
	if refused != nil {
		return s.refuseAccount(batch, account, in, refusalReason(refused))
	}
	batch.writes, batch.entries = append(batch.writes, account), append(batch.entries, in)
	return nil
}

// importedHash returns what is stored of a password hash that an agent sends, in the formats of
// docs/interface/accounts.md#password-hashes. It is empty for a hash that cannot be compared here:
// then the agent checks the password at logins.
func (s *Service) importedHash(agent store.Agent, in field.Text) string {
	if !in.Given() || agent.ProviderID != directory.LDAP {
		return ""
	}
	stored, err := pwhash.ParseImported(in.Value, s.alias)
	if err != nil {
		return ""
	}
	return stored
}

// refuseAccount records an account of a page as refused. An account that exists stays as it was,
// except that it is disabled or enabled as the source says.
func (s *Service) refuseAccount(batch *accountBatch, account store.MirroredAccountWrite, in SyncAccount,
	reason string) error {
	name := in.Username.Or(in.Email.Value)
	r, err := s.refusal(agentstore.AccountEntry, in.ExternalID.Value, name, reason, in, in.invalid)
	if err != nil {
		return err
	}
	batch.refused = append(batch.refused, r)
	known, isKnown := batch.known[in.ExternalID.Value]
	if !isKnown {
		return nil
	}
	batch.unchanged = append(batch.unchanged, in.ExternalID.Value) // refused, but not deleted at the source
	if known.Disabled != account.Disabled || known.Absent {
		batch.statuses = append(batch.statuses, account)
		batch.recordDisabled(account)
	}
	return nil
}

// recordDisabled notes an account that its source has disabled, for the event AccountDisabled.
func (batch *accountBatch) recordDisabled(account store.MirroredAccountWrite) {
	if account.MirroredAccount.Status == directoryapi.Enabled && account.Account.Status != directoryapi.Enabled {
		batch.newlyDisabled = append(batch.newlyDisabled, account.AccountID)
	}
}

// writeAccounts resolves conflicts of login names and writes the batch.
func (s *Service) writeAccounts(ctx context.Context, tx *store.Tx, agent store.Agent, number int64,
	batch *accountBatch) error {
	requests, wanted := make([]nameRequest, len(batch.writes)), []string{}
	for i, a := range batch.writes {
		requests[i] = nameRequest{id: a.ID, wanted: []string{field.LoginName(a.Username), field.LoginName(a.Email)}}
		if !a.AccountID.IsZero() {
			requests[i].current = []string{a.UsernameFolded, a.EmailFolded}
		}
		wanted = append(append(wanted, requests[i].wanted...), requests[i].current...)
	}
	holders, err := tx.LoginNames(ctx, agent.TenantID, agent.DirectoryID, wanted)
	if err != nil {
		return err
	}
	refused, releasing := resolveNameConflicts(requests, holders)
	var added, changed []store.MirroredAccountWrite
	var written []string
	for i, a := range batch.writes {
		name, isRefused := refused[i]
		switch {
		case isRefused:
			err = s.refuseAccount(batch, a, batch.entries[i],
				"another account of the directory has the user name or email "+name)
			if err != nil {
				return err
			}
			continue
		case a.AccountID.IsZero():
			added = append(added, a)
		default:
			changed = append(changed, a)
			batch.recordDisabled(a)
		}
		written = append(written, a.ExternalID)
	}
	if len(releasing) > 0 {
		if err := tx.ReleaseAccountNames(ctx, agent.TenantID, releasing); err != nil {
			return err
		}
	}
	for _, write := range []func() error{
		func() error {
			return tx.UpdateMirroredAccounts(ctx, agent.TenantID, agent.DirectoryID, changed, number)
		},
		func() error { return tx.InsertMirroredAccounts(ctx, agent.TenantID, agent.DirectoryID, added, number) },
		func() error { return tx.SetMirroredStatuses(ctx, agent.TenantID, agent.DirectoryID, batch.statuses) },
		func() error {
			return tx.MarkAccountsSeen(ctx, agent.TenantID, agent.DirectoryID, batch.unchanged, number)
		},
	} {
		if err := write(); err != nil {
			return err
		}
	}
	agentstore.DeleteRefusals(tx.Tx, agent.Ref(), agentstore.AccountEntry, written)
	agentstore.UpsertRefusals(tx.Tx, agent.Ref(), batch.refused, number)
	for _, account := range batch.newlyDisabled {
		if err := tx.Emit(ctx, events.AccountDisabled{Tenant: agent.TenantID, Account: account}); err != nil {
			return err
		}
	}
	return nil
}
