package directory

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure/pwhash"
	"github.com/doorward/doorward/services/directory/store"
)

func (s *Service) forgetAccounts(ctx context.Context, agent store.Agent, externalIDs []string) error {
	return s.mirrorTx(ctx, agent, func(tx *store.Tx) error {
		tx.DropRefusals(ctx, agent, store.AccountEntry, externalIDs)
		_, err := s.removeAbsentAccounts(ctx, tx, store.Absent{TenantID: agent.TenantID, DirectoryID: agent.DirectoryID,
			ExternalIDs: externalIDs})
		return err
	})
}

func (s *Service) removeAbsentAccounts(ctx context.Context, tx *store.Tx, of store.Absent) (int64, error) {
	accounts, err := tx.RemoveAbsentAccounts(ctx, of, batch)
	if err != nil || len(accounts) == 0 {
		return 0, err
	}
	return int64(len(accounts)), tx.Emit(ctx, events.AccountsDeleted{Tenant: of.TenantID, Directory: of.DirectoryID, Accounts: accounts})
}

// accountBatch is a batch of accounts of a sync as it is sorted out.
type accountBatch struct {
	now       []store.MirrorAccount // to be written, new or changed
	entries   []SyncAccount         // what they were made of
	known     map[string]store.Mirrored
	same      []string // external ids of those that have not changed
	refused   []store.Refusal
	statuses  []store.MirrorAccount // of refused entries whose status changes all the same
	disabling []id.ID
}

// takeAccounts writes the accounts of a page, at most batch, and returns how many
// it took.
func (s *Service) takeAccounts(ctx context.Context, agent store.Agent, number int64, in []SyncAccount) (taken int, err error) {
	in = latest(in, func(a SyncAccount) string { return a.ExternalID.Value })
	ids := make([]string, len(in))
	for i, a := range in {
		ids[i] = a.ExternalID.Value
	}
	err = s.mirrorTx(ctx, agent, func(tx *store.Tx) error {
		found, err := tx.MirroredAccounts(ctx, agent.TenantID, agent.DirectoryID, ids)
		if err != nil {
			return err
		}
		t := accountBatch{known: make(map[string]store.Mirrored, len(found))}
		for _, m := range found {
			t.known[m.ExternalID] = m
		}
		for _, a := range in {
			if err := s.sortAccount(agent, &t, a); err != nil {
				return err
			}
		}
		if err := s.writeAccounts(ctx, tx, agent, number, &t); err != nil {
			return err
		}
		taken = len(in) - len(t.refused)
		return nil
	})
	return taken, err
}

// sortAccount decides what becomes of one account of a page, names aside.
func (s *Service) sortAccount(agent store.Agent, t *accountBatch, in SyncAccount) error {
	text, err := json.Marshal(in)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(text)
	known, isKnown := t.known[in.ExternalID.Value]
	if isKnown && bytes.Equal(known.Digest, sum[:]) {
		t.same = append(t.same, in.ExternalID.Value)
		return nil
	}
	now := s.now()
	account := store.MirrorAccount{Mirrored: known, Account: directoryapi.Account{
		TenantID: agent.TenantID, ID: known.AccountID, DirectoryID: agent.DirectoryID,
		EmailVerificationStatus: directoryapi.Verified, CreatedAt: now, ModifiedAt: now,
	}}
	if !isKnown {
		account.Account.ID, account.Wanted = id.New(now), directoryapi.Enabled
	}
	account.ExternalID, account.Digest, account.Disabled = in.ExternalID.Value, sum[:], in.Disabled.Or(false)
	account.PasswordHash = s.syncedPassword(agent, in.PasswordHash)
	account.Account.Status = account.Wanted
	if account.Disabled {
		account.Account.Status = directoryapi.Disabled
	}
	username := in.Username
	username.Present = true // none is the email
	username.Null = !in.Username.Given()
	refused := apply(&account.Account, directoryapi.NewAccount{Username: username, Email: in.Email, GivenName: in.GivenName,
		MiddleName: in.MiddleName, Surname: in.Surname}, store.Registrar{}, true)
	if account.Account.Status == "" {
		account.Account.Status = account.Wanted
	}
	if refused != nil {
		return s.refuseAccount(t, account, in, reasonOf(refused))
	}
	t.now, t.entries = append(t.now, account), append(t.entries, in)
	return nil
}

// syncedPassword returns the form to store of a password hash that an agent sends,
// in the formats of docs/interface/accounts.md#password-hashes. It is empty where there
// is none that can be compared here: then the agent compares the password.
func (s *Service) syncedPassword(agent store.Agent, in field.Text) string {
	if !in.Given() || agent.ProviderID != ldap {
		return ""
	}
	stored, err := pwhash.ParseImported(in.Value, s.Alias())
	if err != nil {
		return ""
	}
	return stored
}

// refuseAccount lists an account that is not taken. One that is there stays as it
// was, but for being disabled.
func (s *Service) refuseAccount(t *accountBatch, account store.MirrorAccount, in SyncAccount, reason string) error {
	name := in.Username.Or(in.Email.Value)
	r, err := s.refusal(store.AccountEntry, in.ExternalID.Value, name, reason, in)
	if err != nil {
		return err
	}
	t.refused = append(t.refused, r)
	known, isKnown := t.known[in.ExternalID.Value]
	if !isKnown {
		return nil
	}
	t.same = append(t.same, in.ExternalID.Value) // its sync held it
	if known.Disabled != account.Disabled {
		t.statuses = append(t.statuses, account)
		t.noteDisabling(account)
	}
	return nil
}

func (t *accountBatch) noteDisabling(account store.MirrorAccount) {
	if account.Mirrored.Status == directoryapi.Enabled && account.Account.Status != directoryapi.Enabled {
		t.disabling = append(t.disabling, account.AccountID)
	}
}

// writeAccounts resolves clashes of login names and writes the batch.
func (s *Service) writeAccounts(ctx context.Context, tx *store.Tx, agent store.Agent, number int64, t *accountBatch) error {
	claims, wanted := make([]claim, len(t.now)), []string{}
	for i, a := range t.now {
		claims[i] = claim{id: a.ID, names: []string{field.Fold(a.Username), field.Fold(a.Email)}}
		if !a.AccountID.IsZero() {
			claims[i].held = []string{a.UsernameFolded, a.EmailFolded}
		}
		wanted = append(append(wanted, claims[i].names...), claims[i].held...)
	}
	owned, err := tx.LoginNames(ctx, agent.TenantID, agent.DirectoryID, wanted)
	if err != nil {
		return err
	}
	clashing, releasing := clashes(claims, owned)
	var added, changed []store.MirrorAccount
	var taken []string
	for i, a := range t.now {
		name, clash := clashing[i]
		switch {
		case clash:
			err = s.refuseAccount(t, a, t.entries[i], "another account of the directory has the user name or email "+name)
			if err != nil {
				return err
			}
			continue
		case a.AccountID.IsZero():
			added = append(added, a)
		default:
			changed = append(changed, a)
			t.noteDisabling(a)
		}
		taken = append(taken, a.ExternalID)
	}
	if len(releasing) > 0 {
		if err := tx.ReleaseNames(ctx, agent.TenantID, releasing); err != nil {
			return err
		}
	}
	for _, write := range []func() error{
		func() error { return tx.UpdateMirrored(ctx, agent.TenantID, agent.DirectoryID, changed, number) },
		func() error { return tx.InsertMirrored(ctx, agent.TenantID, agent.DirectoryID, added, number) },
		func() error { return tx.SetMirroredStatuses(ctx, agent.TenantID, agent.DirectoryID, t.statuses) },
		func() error { return tx.MarkSeen(ctx, agent.TenantID, agent.DirectoryID, t.same, number) },
	} {
		if err := write(); err != nil {
			return err
		}
	}
	tx.DropRefusals(ctx, agent, store.AccountEntry, taken)
	tx.Refuse(ctx, agent, t.refused, number)
	for _, account := range t.disabling {
		if err := tx.Emit(ctx, events.AccountDisabled{Tenant: agent.TenantID, Account: account}); err != nil {
			return err
		}
	}
	return nil
}

// recordStatus records what an administrator wants the status of a mirrored account to
// be. While the source has it disabled, the account is disabled all the same.
func recordStatus(ctx context.Context, tx *store.Tx, a *directoryapi.Account) error {
	disabled, err := tx.SetWantedStatus(ctx, a.TenantID, a.ID, a.Status)
	if disabled {
		a.Status = directoryapi.Disabled
	}
	return err
}
