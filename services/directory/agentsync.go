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
	// groupBatch bounds the groups of one transaction.
	groupBatch = 100
	// maxRetries bounds how many times the refused entries of a sync are tried again, each
	// time after one of them was taken.
	maxRetries = 5
	// removingBatch bounds the syncs that are finished in one go.
	removingBatch = 100
)

// Sync is a page of what a directory server has
// (docs/interface/connectors.md#synchronization).
type Sync struct {
	SyncID          field.Text              `json:"syncId"`
	Accounts        field.Of[[]SyncAccount] `json:"accounts"`
	Groups          field.Of[[]SyncGroup]   `json:"groups"`
	DeletedAccounts field.Of[[]string]      `json:"deletedAccounts"`
	DeletedGroups   field.Of[[]string]      `json:"deletedGroups"`
	Complete        field.Bool              `json:"complete"`
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
}

// UnmarshalJSON reads an account of a page.
func (in *SyncAccount) UnmarshalJSON(data []byte) error {
	type members SyncAccount // without this method
	return field.Nested(data, (*members)(in), nil)
}

// SyncGroup is a group of a directory server with all its members.
type SyncGroup struct {
	ExternalID  field.Text         `json:"externalId,omitzero"`
	Name        field.Text         `json:"name,omitzero"`
	Description field.Text         `json:"description,omitzero"`
	Members     field.Of[[]string] `json:"members,omitzero"`
}

// UnmarshalJSON reads a group of a page.
func (in *SyncGroup) UnmarshalJSON(data []byte) error {
	type members SyncGroup
	return field.Nested(data, (*members)(in), nil)
}

// key is what identifies a group: its external id or else its name.
func (in SyncGroup) key() string {
	if in.ExternalID.Given() {
		return "id:" + in.ExternalID.Value
	}
	return "name:" + field.Fold(in.Name.Value)
}

// Sync takes a page of what a directory server has. Entries that cannot be taken
// are left out and listed. After the last page of a sync, FinishSyncs removes what
// none of the pages held. A page that is repeated changes nothing.
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
	err = s.mirrorTx(ctx, agent, func(tx *store.Tx) (err error) {
		tx.AgentSeen(ctx, at.Tenant, at.ID, s.now(), true)
		number, err = tx.BeginSync(ctx, agent, syncID, s.now())
		return err
	})
	if err != nil {
		return err
	}
	if err := s.takePage(ctx, agent, number, in); err != nil {
		return err
	}
	if syncID != "" && !complete {
		return nil
	}
	err = s.store.Tx(ctx, func(tx *store.Tx) error { return tx.EndSync(ctx, agent, syncID) })
	if err != nil {
		return err
	}
	select {
	case s.syncEnded <- struct{}{}:
	default:
	}
	return nil
}

// check refuses a page that cannot be read as one.
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
		if !areTexts(g.Members.Value) {
			return "", apierr.Format.Because("groups[%d]: members must not contain the character NUL", i)
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

// takePage writes the entries of a page, a batch in a transaction.
func (s *Service) takePage(ctx context.Context, agent store.Agent, number int64, in Sync) error {
	for part := range slices.Chunk(in.Accounts.Value, batch) {
		if _, err := s.takeAccounts(ctx, agent, number, part); err != nil {
			return err
		}
	}
	for part := range slices.Chunk(in.Groups.Value, groupBatch) {
		if _, err := s.takeGroups(ctx, agent, number, part); err != nil {
			return err
		}
	}
	for part := range slices.Chunk(in.DeletedAccounts.Value, batch) {
		if err := s.forgetAccounts(ctx, agent, part); err != nil {
			return err
		}
	}
	for part := range slices.Chunk(in.DeletedGroups.Value, batch) {
		if err := s.forgetGroups(ctx, agent, part); err != nil {
			return err
		}
	}
	return nil
}

// latest returns the entries with each key once, the last of it.
func latest[T any](in []T, key func(T) string) []T {
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

// mirrorTx runs a transaction that is the only one to write the agent's directory.
func (s *Service) mirrorTx(ctx context.Context, agent store.Agent, fn func(*store.Tx) error) error {
	return s.store.Tx(ctx, func(tx *store.Tx) error {
		if err := tx.LockMirror(ctx, agent.DirectoryID); err != nil {
			return err
		}
		return fn(tx)
	})
}
