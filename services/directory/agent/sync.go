package agent

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/directory"
	agentstore "github.com/doorward/doorward/services/directory/agent/store"
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
	in.invalid = field.Nested(data, (*members)(in), nil)
	return ifUnknownProperty(in.invalid)
}

// ifUnknownProperty returns the error of an entry that has a property which no entry has: a mistake of
// the agent, which refuses the page. Any other error leaves out the entry alone.
func ifUnknownProperty(err error) error {
	if errors.Is(err, apierr.UnknownProperty) {
		return err
	}
	return nil
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
	in.invalid = field.Nested(data, (*members)(in), nil)
	if in.invalid == nil && !areTexts(in.Members.Value) {
		in.invalid = apierr.Format.Because("members must not contain the character NUL")
	}
	return ifUnknownProperty(in.invalid)
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
// refusals. After the last page of a sync, FinishSyncs makes the accounts absent, and deletes the
// groups, that no page had; a sync that would make too many absent is apierr.SyncHeld, and nothing of
// its last page is written (brake, absence.go). Sending a page again changes nothing
// (idempotent). The agent's side is services/agent/sync.go.
func (s *Service) Sync(ctx context.Context, at id.Ref, in Sync) error {
	complete := in.Complete.Or(false)
	syncID, err := in.check()
	if err != nil {
		return err
	}
	unnamed, err := s.removeUnnamed(&in)
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
	var begun agentstore.BegunSync
	var held int64
	err = s.lockedTx(ctx, agent, func(tx *store.Tx) (err error) {
		if agent, err = tx.LockAgent(ctx, at.Tenant, at.ID, s.onlineSince()); err != nil {
			return err
		}
		tx.RecordAgentCall(ctx, at.Tenant, at.ID, s.now(), true)
		if begun, err = agentstore.BeginSync(ctx, tx.Tx, at, agent.DirectoryID, syncID, s.now()); err != nil {
			return err
		}
		if held, err = s.brake(ctx, tx, agent, begun, in); err != nil || held == 0 {
			return err
		}
		return agentstore.HoldSync(ctx, tx.Tx, at, agent.DirectoryID, syncID, held, s.now())
	})
	switch {
	case err != nil:
		return err
	case held > 0:
		return s.heldError(ctx, agent, held)
	}
	if err := s.writePage(ctx, agent, begun.Number, in, unnamed); err != nil {
		return err
	}
	if syncID != "" && !complete {
		return nil
	}
	err = s.store.Tx(ctx, func(tx *store.Tx) error {
		return agentstore.MarkSyncReceived(ctx, tx.Tx, at, syncID)
	})
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
		return "", apierr.AboveMaximum.Because(
			"the page has %d entries; send at most %d and the others in further pages", n,
			maxPage)
	}
	if !areTexts(in.DeletedAccounts.Value) || !areTexts(in.DeletedGroups.Value) {
		return "", apierr.Format.Because("deletedAccounts and deletedGroups must not contain the character NUL")
	}
	return syncID, nil
}

// removeUnnamed removes the entries of a page that no id identifies, and returns them as refusals.
func (s *Service) removeUnnamed(in *Sync) ([]agentstore.Refusal, error) {
	var refused []agentstore.Refusal
	refuse := func(kind, name string, entry any, reason error) error {
		text, err := json.Marshal(entry)
		if err != nil {
			return err
		}
		refused = append(refused,
			agentstore.Refusal{Kind: kind, ExternalID: hex.EncodeToString(digest(text)), Name: name,
				Reason: refusalReason(reason), Entry: json.RawMessage("null"), CreatedAt: s.now()})
		return nil
	}
	accounts, groups := []SyncAccount{}, []SyncGroup{}
	for _, a := range in.Accounts.Value {
		if _, reason := field.Verbatim(a.ExternalID, "externalId", maxEntryID); reason != nil {
			if err := refuse(agentstore.UnnamedAccount, a.Username.Or(a.Email.Value), a,
				cmp.Or(a.invalid, reason)); err != nil {
				return nil, err
			}
			continue
		}
		accounts = append(accounts, a)
	}
	for _, g := range in.Groups.Value {
		if reason := g.checkKey(); reason != nil {
			if err := refuse(agentstore.UnnamedGroup, g.Name.Value, g, cmp.Or(g.invalid, reason)); err != nil {
				return nil, err
			}
			continue
		}
		groups = append(groups, g)
	}
	in.Accounts.Value, in.Groups.Value = accounts, groups
	return refused, nil
}

// checkKey reports what keeps a group from being identified.
func (in SyncGroup) checkKey() error {
	switch {
	case in.ExternalID.Given() && len(in.key()) > 4*maxEntryID:
		return apierr.TooLong.Because("externalId has at most %d characters", maxEntryID)
	case in.ExternalID.Given() || in.Name.Given() && len(in.key()) <= 4*maxEntryID:
		return nil
	}
	return apierr.Required.Because("externalId or a name of at most %d characters is required", directory.MaxName)
}

func digest(text []byte) []byte {
	sum := sha256.Sum256(text)
	return sum[:]
}

func areTexts(ids []string) bool {
	return !slices.ContainsFunc(ids, func(id string) bool { return !field.IsText(id) })
}

// writePage writes the entries of a page in batches, a transaction each, and lists the unnamed ones.
func (s *Service) writePage(ctx context.Context, agent store.Agent, number int64, in Sync,
	unnamed []agentstore.Refusal) error {
	for part := range slices.Chunk(unnamed, directory.BatchSize) {
		err := s.store.Tx(ctx, func(tx *store.Tx) error {
			agentstore.UpsertRefusals(tx.Tx, agent.Ref(), part, number)
			return nil
		})
		if err != nil {
			return err
		}
	}
	for part := range slices.Chunk(in.Accounts.Value, directory.BatchSize) {
		if _, err := s.writeAccountBatch(ctx, agent, number, part); err != nil {
			return err
		}
	}
	for part := range slices.Chunk(in.Groups.Value, groupBatch) {
		if _, err := s.writeGroupBatch(ctx, agent, number, part); err != nil {
			return err
		}
	}
	for part := range slices.Chunk(in.DeletedAccounts.Value, directory.BatchSize) {
		if err := s.endDeletedAccounts(ctx, agent, part); err != nil {
			return err
		}
	}
	for part := range slices.Chunk(in.DeletedGroups.Value, directory.BatchSize) {
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
