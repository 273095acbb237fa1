package agent

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/directory"
	agentstore "github.com/doorward/doorward/services/directory/agent/store"
	"github.com/doorward/doorward/services/directory/store"
)

// deleteGroups deletes the groups with these external ids, and their refusals.
func (s *Service) deleteGroups(ctx context.Context, agent store.Agent, externalIDs []string) error {
	keys := make([]string, len(externalIDs))
	for i, external := range externalIDs {
		keys[i] = SyncGroup{ExternalID: field.Some(external)}.key()
	}
	return s.lockedTx(ctx, agent, func(tx *store.Tx) error {
		agentstore.DeleteRefusals(tx.Tx, agent.Ref(), agentstore.GroupEntry, keys)
		_, err := s.deleteVanishedGroups(ctx, tx,
			store.Vanished{TenantID: agent.TenantID, DirectoryID: agent.DirectoryID, ExternalIDs: keys})
		return err
	})
}

// deleteVanishedGroups deletes a batch of groups and returns their number.
func (s *Service) deleteVanishedGroups(ctx context.Context, tx *store.Tx, of store.Vanished) (int64, error) {
	groups, err := tx.DeleteVanishedGroups(ctx, of, directory.BatchSize)
	for _, group := range groups {
		if err := tx.Emit(ctx,
			events.GroupDeleted{Tenant: of.TenantID, Group: group, Directory: of.DirectoryID}); err != nil {
			return 0, err
		}
	}
	return int64(len(groups)), err
}

// writeGroupBatch writes groups of a page with their members, and returns how many were not
// refused.
func (s *Service) writeGroupBatch(ctx context.Context, agent store.Agent, number int64,
	in []SyncGroup) (written int, err error) {
	in = lastByKey(in, SyncGroup.key)
	keys := make([]string, len(in))
	for i, g := range in {
		keys[i] = g.key()
	}
	err = s.lockedTx(ctx, agent, func(tx *store.Tx) error {
		found, err := tx.MirroredGroups(ctx, agent.TenantID, agent.DirectoryID, keys)
		if err != nil {
			return err
		}
		refused, err := s.writeGroups(ctx, tx, agent, number, in, found)
		written = len(in) - refused
		return err
	})
	return written, err
}

// writeGroups resolves conflicts of group names and writes the batch.
func (s *Service) writeGroups(ctx context.Context, tx *store.Tx, agent store.Agent, number int64, in []SyncGroup,
	found []store.MirroredGroup) (refused int, err error) {
	known := make(map[string]store.MirroredGroup, len(found))
	for _, m := range found {
		known[m.ExternalID] = m
	}
	now := s.now()
	var groups []directoryapi.Group
	var entries []SyncGroup
	var requests []nameRequest
	var wanted, written []string
	var refusals []agentstore.Refusal
	refuse := func(g SyncGroup, reason string) error {
		r, err := s.refusal(agentstore.GroupEntry, g.key(), g.Name.Value, reason, g, g.invalid)
		refusals = append(refusals, r)
		tx.MarkGroupSeen(ctx, agent.TenantID, agent.DirectoryID, g.key(), number)
		return err
	}
	for _, entry := range in {
		m := known[entry.key()]
		g := directoryapi.Group{TenantID: agent.TenantID, ID: m.GroupID, DirectoryID: agent.DirectoryID,
			Status:    directoryapi.Enabled,
			CreatedAt: now, ModifiedAt: now}
		if g.ID.IsZero() {
			g.ID = id.New(now)
		}
		err := cmp.Or(entry.invalid,
			directory.ApplyGroup(&g, directoryapi.NewGroup{Name: entry.Name, Description: entry.Description}, true))
		if err != nil {
			if err := refuse(entry, refusalReason(err)); err != nil {
				return 0, err
			}
			continue
		}
		request := nameRequest{id: g.ID, wanted: []string{field.Fold(g.Name)}}
		if !m.GroupID.IsZero() {
			request.current = []string{m.NameFolded}
		}
		groups, entries, requests = append(groups, g), append(entries, entry), append(requests, request)
		wanted = append(append(wanted, request.wanted...), request.current...)
	}
	holders, err := tx.GroupNames(ctx, agent.TenantID, agent.DirectoryID, wanted)
	if err != nil {
		return 0, err
	}
	conflicts, releasing := resolveNameConflicts(requests, holders)
	if len(releasing) > 0 {
		if err := tx.ReleaseGroupNames(ctx, agent.TenantID, releasing); err != nil {
			return 0, err
		}
	}
	for i, g := range groups {
		if name, isRefused := conflicts[i]; isRefused {
			if err := refuse(entries[i], "another group of the directory has the name "+name); err != nil {
				return 0, err
			}
			continue
		}
		if err := s.writeGroup(ctx, tx, g, known[entries[i].key()], entries[i], number); err != nil {
			return 0, err
		}
		written = append(written, entries[i].key())
	}
	agentstore.DeleteRefusals(tx.Tx, agent.Ref(), agentstore.GroupEntry, written)
	agentstore.UpsertRefusals(tx.Tx, agent.Ref(), refusals, number)
	return len(refusals), nil
}

// writeGroup writes one group and its members. Name and description are written only where one of
// them has changed.
func (s *Service) writeGroup(ctx context.Context, tx *store.Tx, g directoryapi.Group, known store.MirroredGroup,
	in SyncGroup,
	number int64) error {
	members := slices.Compact(slices.Sorted(slices.Values(in.Members.Value)))
	in.Members = field.Nullable[[]string]{}
	text, err := json.Marshal(in)
	if err != nil {
		return err
	}
	sum := digest(text)
	if bytes.Equal(sum, known.Digest) {
		tx.MarkGroupSeen(ctx, g.TenantID, g.DirectoryID, in.key(), number)
	} else if err := tx.UpsertMirroredGroup(ctx, g, store.MirroredGroup{ExternalID: in.key(), Digest: sum},
		number); err != nil {
		return err
	}
	accounts, err := tx.AccountsByExternalID(ctx, g.TenantID, g.DirectoryID, members)
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
	return tx.SetMembers(ctx, g, ids, awaited, number, g.ModifiedAt)
}
