package directory

import (
	"context"
	"slices"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/directory/store"
)

const (
	maxSyncID  = 100
	maxEntryID = 255
	// maxPage bounds the entries of one page of a sync.
	maxPage = 10_000
	// groupBatch bounds the groups that one transaction writes.
	groupBatch = 100
	// maxRetries bounds how often the refused entries of a sync are retried; each retry follows one
	// that wrote some of them.
	maxRetries = 5
	// finishBatch bounds how many syncs one pass of FinishSyncs finishes.
	finishBatch = 100
)

// Sync is a page of the accounts and groups of an LDAP or Active Directory server, sent by an
// agent (docs/interface/connectors.md#synchronization).
type Sync struct {
	SyncID          field.Text                    `json:"syncId"`
	Accounts        field.Nullable[[]SyncAccount] `json:"accounts"`
	Groups          field.Nullable[[]SyncGroup]   `json:"groups"`
	DeletedAccounts field.Nullable[[]string]      `json:"deletedAccounts"`
	DeletedGroups   field.Nullable[[]string]      `json:"deletedGroups"`
	Complete        field.Bool                    `json:"complete"`
}

// SyncAccount is an account of a directory server.
type SyncAccount struct {
	ExternalID   field.Text `json:"externalId,omitzero"`
	Username     field.Text `json:"username,omitzero"`
	Email        field.Text `json:"email,omitzero"`
	GivenName    field.Text `json:"givenName,omitzero"`
	MiddleName   field.Text `json:"middleName,omitzero"`
	Surname      field.Text `json:"surname,omitzero"`
	Disabled     field.Bool `json:"disabled,omitzero"`
	PasswordHash field.Text `json:"passwordHash,omitzero"`

	invalid error // of a member that could not be decoded: the account is refused
}

// UnmarshalJSON reads an account of a page.
func (in *SyncAccount) UnmarshalJSON(data []byte) error {
	type members SyncAccount // without this method
	err := field.Nested(data, (*members)(in), nil)
	return ifUnnamed(in.ExternalID, err, &in.invalid)
}

// SyncGroup is a group of a directory server with all its members.
type SyncGroup struct {
	ExternalID  field.Text               `json:"externalId,omitzero"`
	Name        field.Text               `json:"name,omitzero"`
	Description field.Text               `json:"description,omitzero"`
	Members     field.Nullable[[]string] `json:"members,omitzero"`

	invalid error // as that of SyncAccount
}

// UnmarshalJSON reads a group of a page.
func (in *SyncGroup) UnmarshalJSON(data []byte) error {
	type members SyncGroup
	err := field.Nested(data, (*members)(in), nil)
	if err == nil && !areTexts(in.Members.Value) {
		err = apierr.Format.Because("members must not contain the character NUL")
	}
	return ifUnnamed(in.ExternalID, err, &in.invalid)
}

// ifUnnamed returns the error of an entry that has no external id to list it by, which refuses the
// page. That of another entry is stored in invalid.
func ifUnnamed(externalID field.Text, err error, invalid *error) error {
	if !externalID.Given() {
		return err
	}
	*invalid = err
	return nil
}

// key identifies a group: by its external id, or by its name where it has none.
func (in SyncGroup) key() string {
	if in.ExternalID.Given() {
		return "id:" + in.ExternalID.Value
	}
	return "name:" + field.Fold(in.Name.Value)
}

// Sync writes a page of a sync (directory synchronization, user import) into the mirror directory
// of the agent. Entries that are invalid or whose names are taken are left out and listed as
// refusals. After the last page of a sync, FinishSyncs deletes the accounts and groups that no
// page had. Sending a page again changes nothing (idempotent). The agent's side is
// services/agent/sync.go.
func (s *Service) Sync(ctx context.Context, at id.Ref, in Sync) error {
	complete := in.Complete.Or(false)
	syncID, err := in.check()
	if err != nil {
		return err
	}
	agent, err := s.Agent(ctx, at)
	if err != nil {
		return err
	}
	if syncID == "" && complete {
		syncID = id.New(s.now()).String()
	}
	var number int64
	err = s.lockedTx(ctx, agent, func(tx *store.Tx) (err error) {
		tx.RecordAgentCall(ctx, at.Tenant, at.ID, s.now(), true)
		number, err = tx.BeginSync(ctx, agent, syncID, s.now())
		return err
	})
	if err != nil {
		return err
	}
	if err := s.writePage(ctx, agent, number, in); err != nil {
		return err
	}
	if syncID != "" && !complete {
		return nil
	}
	err = s.store.Tx(ctx, func(tx *store.Tx) error { return tx.MarkSyncReceived(ctx, agent, syncID) })
	if err != nil {
		return err
	}
	select {
	case s.syncReceived <- struct{}{}:
	default:
	}
	return nil
}

// check validates a page and returns the id of its sync.
func (in Sync) check() (syncID string, err error) {
	if in.SyncID.Given() {
		if syncID, err = field.Verbatim(in.SyncID, "syncId", maxSyncID); err != nil {
			return "", err
		}
	}
	deleted := len(in.DeletedAccounts.Value) + len(in.DeletedGroups.Value)
	if n := len(in.Accounts.Value) + len(in.Groups.Value) + deleted; n > maxPage {
		return "", apierr.AboveMaximum.Because("the page has %d entries; send at most %d and the others in further pages", n, maxPage)
	}
	for i, a := range in.Accounts.Value {
		if _, err := field.Verbatim(a.ExternalID, "externalId", maxEntryID); err != nil {
			return "", apierr.From(err).Because("accounts[%d]: externalId is required and has at most %d characters", i, maxEntryID)
		}
	}
	for i, g := range in.Groups.Value {
		if !g.ExternalID.Given() && !g.Name.Given() {
			return "", apierr.Required.Because("groups[%d]: externalId or name is required", i)
		}
		if len(g.key()) > 4*maxEntryID {
			return "", apierr.TooLong.Because("groups[%d]: externalId has at most %d characters", i, maxEntryID)
		}
	}
	if !areTexts(in.DeletedAccounts.Value) || !areTexts(in.DeletedGroups.Value) {
		return "", apierr.Format.Because("deletedAccounts and deletedGroups must not contain the character NUL")
	}
	return syncID, nil
}

func areTexts(ids []string) bool {
	return !slices.ContainsFunc(ids, func(id string) bool { return !field.IsText(id) })
}

// writePage writes the entries of a page in batches, a transaction each.
func (s *Service) writePage(ctx context.Context, agent store.Agent, number int64, in Sync) error {
	for part := range slices.Chunk(in.Accounts.Value, batchSize) {
		if _, err := s.writeAccountBatch(ctx, agent, number, part); err != nil {
			return err
		}
	}
	for part := range slices.Chunk(in.Groups.Value, groupBatch) {
		if _, err := s.writeGroupBatch(ctx, agent, number, part); err != nil {
			return err
		}
	}
	for part := range slices.Chunk(in.DeletedAccounts.Value, batchSize) {
		if err := s.deleteAccounts(ctx, agent, part); err != nil {
			return err
		}
	}
	for part := range slices.Chunk(in.DeletedGroups.Value, batchSize) {
		if err := s.deleteGroups(ctx, agent, part); err != nil {
			return err
		}
	}
	return nil
}

// lastByKey returns the entries without duplicates: of those with one key, the last.
func lastByKey[T any](in []T, key func(T) string) []T {
	last := make(map[string]int, len(in))
	for i, entry := range in {
		last[key(entry)] = i
	}
	if len(last) == len(in) {
		return in
	}
	var kept []T
	for i, entry := range in {
		if last[key(entry)] == i {
			kept = append(kept, entry)
		}
	}
	return kept
}

// lockedTx runs a transaction while no other transaction writes the mirror directory of the agent.
func (s *Service) lockedTx(ctx context.Context, agent store.Agent, fn func(*store.Tx) error) error {
	return s.store.Tx(ctx, func(tx *store.Tx) error {
		if err := tx.LockMirror(ctx, agent.DirectoryID); err != nil {
			return err
		}
		return fn(tx)
	})
}
