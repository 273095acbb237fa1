package directory

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"slices"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/purge"
	"github.com/doorward/doorward/services/directory/store"
)

const (
	maxSyncID  = 100
	maxEntryID = 255
	// maxPage bounds the entries of one page of a sync.
	maxPage = 10_000
	// groupBatch bounds the groups of one transaction.
	groupBatch = 100
	// maxRetries bounds how often the refused entries of a sync are tried again,
	// each time after one of them was taken.
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
	ExternalID field.Text `json:"externalId,omitzero"`
	Username   field.Text `json:"username,omitzero"`
	Email      field.Text `json:"email,omitzero"`
	GivenName  field.Text `json:"givenName,omitzero"`
	MiddleName field.Text `json:"middleName,omitzero"`
	Surname    field.Text `json:"surname,omitzero"`
	Disabled   field.Bool `json:"disabled,omitzero"`
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

// Refusals returns a page of the entries that the last syncs could not take.
func (s *Service) Refusals(ctx context.Context, at id.Ref, query list.Query) (list.Page[store.Refusal], error) {
	agent, err := s.Agent(ctx, at)
	if err != nil {
		return list.Page[store.Refusal]{}, err
	}
	return s.store.ListRefusals(ctx, at.Tenant, at.ID, query.Of(agent.CreatedAt, agent.ModifiedAt))
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
	err = s.tx(ctx, func(tx *store.Tx) (err error) {
		if err := tx.LockMirror(ctx, agent.DirectoryID); err != nil {
			return err
		}
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
	err = s.tx(ctx, func(tx *store.Tx) error { return tx.EndSync(ctx, agent, syncID) })
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
	}
	return syncID, nil
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

func (s *Service) forgetAccounts(ctx context.Context, agent store.Agent, externalIDs []string) error {
	return s.tx(ctx, func(tx *store.Tx) error {
		if err := tx.LockMirror(ctx, agent.DirectoryID); err != nil {
			return err
		}
		tx.DropRefusals(ctx, agent, store.AccountEntry, externalIDs)
		_, err := s.removeAbsentAccounts(ctx, tx, store.Absent{TenantID: agent.TenantID, DirectoryID: agent.DirectoryID,
			ExternalIDs: externalIDs})
		return err
	})
}

func (s *Service) forgetGroups(ctx context.Context, agent store.Agent, externalIDs []string) error {
	keys := make([]string, len(externalIDs))
	for i, external := range externalIDs {
		keys[i] = SyncGroup{ExternalID: field.Some(external)}.key()
	}
	return s.tx(ctx, func(tx *store.Tx) error {
		if err := tx.LockMirror(ctx, agent.DirectoryID); err != nil {
			return err
		}
		tx.DropRefusals(ctx, agent, store.GroupEntry, keys)
		_, err := s.removeAbsentGroups(ctx, tx, store.Absent{TenantID: agent.TenantID, DirectoryID: agent.DirectoryID, ExternalIDs: keys})
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

func (s *Service) removeAbsentGroups(ctx context.Context, tx *store.Tx, of store.Absent) (int64, error) {
	groups, err := tx.RemoveAbsentGroups(ctx, of, batch)
	for _, group := range groups {
		if err := tx.Emit(ctx, events.GroupDeleted{Tenant: of.TenantID, Group: group, Directory: of.DirectoryID}); err != nil {
			return 0, err
		}
	}
	return int64(len(groups)), err
}

// claim is an entry that wants names of its directory.
type claim struct {
	id    id.ID    // of its account or group
	held  []string // that it has
	names []string // that it is to have
}

// turn is in which order claims get names: what one has it keeps, and an entry
// that is there goes before a new one.
type turn int

const (
	keeps turn = iota
	moves
	comes
)

func (c claim) turn(name string) turn {
	switch {
	case slices.Contains(c.held, name):
		return keeps
	case c.held != nil:
		return moves
	}
	return comes
}

// clashes returns which of the claims cannot have their names, with the name that
// another has. A claim that is refused keeps the names that it has. owned are the
// names that are taken now.
func clashes(claims []claim, owned []store.Owned) (refused map[int]string, releasing []id.ID) {
	refused = map[int]string{}
	for {
		active := map[id.ID]bool{}
		for i, c := range claims {
			if _, no := refused[i]; !no {
				active[c.id] = true
			}
		}
		taken := map[string]id.ID{}
		for _, o := range owned {
			if !active[o.ID] {
				taken[o.Name] = o.ID
			}
		}
		before := len(refused)
		for _, turn := range []turn{keeps, moves, comes} {
			for i, c := range claims {
				for _, name := range c.names {
					if _, no := refused[i]; no || c.turn(name) != turn {
						continue
					}
					if other, clash := taken[name]; clash && other != c.id {
						refused[i] = name
						continue
					}
					taken[name] = c.id
				}
			}
		}
		if len(refused) > before {
			continue
		}
		for _, o := range owned {
			if active[o.ID] && taken[o.Name] != o.ID {
				releasing = append(releasing, o.ID)
			}
		}
		return refused, releasing
	}
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

// taking is a batch of accounts of a sync as it is sorted out.
type taking struct {
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
	err = s.tx(ctx, func(tx *store.Tx) error {
		if err := tx.LockMirror(ctx, agent.DirectoryID); err != nil {
			return err
		}
		found, err := tx.MirroredAccounts(ctx, agent.TenantID, agent.DirectoryID, ids)
		if err != nil {
			return err
		}
		t := taking{known: make(map[string]store.Mirrored, len(found))}
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

// sortAccount decides what becomes of one account of a page, names aside.
func (s *Service) sortAccount(agent store.Agent, t *taking, in SyncAccount) error {
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

// refuseAccount lists an account that is not taken. One that is there stays as it
// was, but for being disabled.
func (s *Service) refuseAccount(t *taking, account store.MirrorAccount, in SyncAccount, reason string) error {
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

func (t *taking) noteDisabling(account store.MirrorAccount) {
	if account.Mirrored.Status == directoryapi.Enabled && account.Account.Status != directoryapi.Enabled {
		t.disabling = append(t.disabling, account.AccountID)
	}
}

// writeAccounts resolves clashes of login names and writes the batch.
func (s *Service) writeAccounts(ctx context.Context, tx *store.Tx, agent store.Agent, number int64, t *taking) error {
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

// takeGroups writes groups of a page with their members, and returns how many it
// took.
func (s *Service) takeGroups(ctx context.Context, agent store.Agent, number int64, in []SyncGroup) (taken int, err error) {
	in = latest(in, SyncGroup.key)
	keys := make([]string, len(in))
	for i, g := range in {
		keys[i] = g.key()
	}
	err = s.tx(ctx, func(tx *store.Tx) error {
		if err := tx.LockMirror(ctx, agent.DirectoryID); err != nil {
			return err
		}
		found, err := tx.MirroredGroups(ctx, agent.TenantID, agent.DirectoryID, keys)
		if err != nil {
			return err
		}
		refused, err := s.writeGroups(ctx, tx, agent, number, in, found)
		taken = len(in) - refused
		return err
	})
	return taken, err
}

func (s *Service) writeGroups(ctx context.Context, tx *store.Tx, agent store.Agent, number int64, in []SyncGroup,
	found []store.MirroredGroup) (refused int, err error) {
	known := make(map[string]store.MirroredGroup, len(found))
	for _, m := range found {
		known[m.ExternalID] = m
	}
	now := s.now()
	var groups []directoryapi.Group
	var entries []SyncGroup
	var claims []claim
	var wanted, taken []string
	var refusals []store.Refusal
	refuse := func(g SyncGroup, reason string) error {
		r, err := s.refusal(store.GroupEntry, g.key(), g.Name.Value, reason, g)
		refusals = append(refusals, r)
		tx.MarkGroupSeen(ctx, agent.TenantID, agent.DirectoryID, g.key(), number)
		return err
	}
	for _, entry := range in {
		m := known[entry.key()]
		g := directoryapi.Group{TenantID: agent.TenantID, ID: m.GroupID, DirectoryID: agent.DirectoryID, Status: directoryapi.Enabled,
			CreatedAt: now, ModifiedAt: now}
		if g.ID.IsZero() {
			g.ID = id.New(now)
		}
		if err := applyGroup(&g, directoryapi.NewGroup{Name: entry.Name, Description: entry.Description}, true); err != nil {
			if err := refuse(entry, reasonOf(err)); err != nil {
				return 0, err
			}
			continue
		}
		c := claim{id: g.ID, names: []string{field.Fold(g.Name)}}
		if !m.GroupID.IsZero() {
			c.held = []string{m.NameFolded}
		}
		groups, entries, claims = append(groups, g), append(entries, entry), append(claims, c)
		wanted = append(append(wanted, c.names...), c.held...)
	}
	owned, err := tx.GroupNames(ctx, agent.TenantID, agent.DirectoryID, wanted)
	if err != nil {
		return 0, err
	}
	clashing, releasing := clashes(claims, owned)
	if len(releasing) > 0 {
		if err := tx.ReleaseGroupNames(ctx, agent.TenantID, releasing); err != nil {
			return 0, err
		}
	}
	for i, g := range groups {
		if name, clash := clashing[i]; clash {
			if err := refuse(entries[i], "another group of the directory has the name "+name); err != nil {
				return 0, err
			}
			continue
		}
		if err := s.writeGroup(ctx, tx, g, known[entries[i].key()], entries[i], number); err != nil {
			return 0, err
		}
		taken = append(taken, entries[i].key())
	}
	tx.DropRefusals(ctx, agent, store.GroupEntry, taken)
	tx.Refuse(ctx, agent, refusals, number)
	return len(refusals), nil
}

// writeGroup writes one group and its members. Its name and description are
// written where one has changed.
func (s *Service) writeGroup(ctx context.Context, tx *store.Tx, g directoryapi.Group, known store.MirroredGroup, in SyncGroup,
	number int64) error {
	members := slices.Compact(slices.Sorted(slices.Values(in.Members.Value)))
	in.Members = field.Of[[]string]{}
	text, err := json.Marshal(in)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(text)
	if bytes.Equal(sum[:], known.Digest) {
		tx.MarkGroupSeen(ctx, g.TenantID, g.DirectoryID, in.key(), number)
	} else if err := tx.PutMirroredGroup(ctx, g, store.MirroredGroup{ExternalID: in.key(), Digest: sum[:]}, number); err != nil {
		return err
	}
	accounts, err := tx.AccountsOf(ctx, g.TenantID, g.DirectoryID, members)
	if err != nil {
		return err
	}
	ids := make([]id.ID, 0, len(accounts))
	awaited := []string{}
	for _, member := range members {
		if account, ok := accounts[member]; ok {
			ids = append(ids, account)
		} else {
			awaited = append(awaited, member)
		}
	}
	return tx.SetMembers(ctx, g, ids, awaited, g.ModifiedAt)
}

// wantStatus notes what an administrator wants the status of a mirrored account to
// be. While the source has it disabled, the account is disabled all the same.
func wantStatus(ctx context.Context, tx *store.Tx, a *directoryapi.Account) error {
	disabled, err := tx.SetWantedStatus(ctx, a.TenantID, a.ID, a.Status)
	if disabled {
		a.Status = directoryapi.Disabled
	}
	return err
}

// SyncWorker finishes syncs when their last page has come, and at its start those
// that another process left.
func (s *Service) SyncWorker(ctx context.Context) error {
	return purge.EveryOr(purgeEvery, s.syncEnded, "a sync of a directory was not finished", s.FinishSyncs)(ctx)
}

// FinishSyncs removes what complete syncs did not hold, and tries refused entries
// again: the names that they want may be free now.
func (s *Service) FinishSyncs(ctx context.Context) error {
	ended, err := s.store.EndedSyncs(ctx, s.now(), removingBatch)
	for _, r := range ended {
		err = errors.Join(err, s.finishSync(ctx, r))
	}
	return err
}

func (s *Service) finishSync(ctx context.Context, r store.EndedSync) error {
	agent := store.Agent{TenantID: r.TenantID, ID: r.AgentID, DirectoryID: r.DirectoryID}
	absent := store.Absent{TenantID: r.TenantID, DirectoryID: r.DirectoryID, Before: r.Number}
	_, err := purge.Drain(ctx, s.tx, func(tx *store.Tx) (int64, error) { return s.removeAbsentAccounts(ctx, tx, absent) })
	if err != nil {
		return err
	}
	_, err = purge.Drain(ctx, s.tx, func(tx *store.Tx) (int64, error) { return s.removeAbsentGroups(ctx, tx, absent) })
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
	return s.tx(ctx, func(tx *store.Tx) error { return tx.FinishSync(ctx, r, s.now()) })
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
