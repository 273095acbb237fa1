package agent

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/go-ldap/ldap/v3"
)

const (
	maxAccounts = 1000   // of a page
	maxGroups   = 100    // of a page
	maxMembers  = 20_000 // of a page, unless one group has more
	// changeTimeResolution is the resolution of modifyTimestamp, which counts seconds: later changes
	// within it can have the same value.
	changeTimeResolution = 2 * time.Second
)

// syncState is what the agent remembers of the entries that it has sent, to find changes and
// deletions. It is in memory only: after a start there is a full sync.
type syncState struct {
	*server
	doorward *Doorward

	accounts           map[entryID]nameHash
	byName             map[nameHash]entryID // of accounts
	groups             map[entryID]struct{}
	highWater          string               // greatest value of the change attribute (high-water mark)
	seenAtHighWater    map[entryID]struct{} // entries that have the value highWater
	highWaterReadAt    time.Time            // when highWater was first read
	highWaterClosed    bool                 // whether no further entry can get the value highWater
	fullSyncAt         time.Time            // end of the last full sync
	deletionsCheckedAt time.Time            // end of the last search for deletions
	held               error                // of the last full sync, if Doorward held it
	searches           int                  // number of searches, for tests and the status
	sent               int                  // number of entries sent
}

func newSyncState(s *server, d *Doorward) *syncState {
	return &syncState{server: s, doorward: d, accounts: map[entryID]nameHash{}, byName: map[nameHash]entryID{}}
}

// errNoAccounts ends a sync that finds no account at all. Doorward would hold it, too, but does not
// know why nothing was found.
var errNoAccounts = errors.New("the search found no account; see that baseDn, accountConfig and the rights of " +
	"agentUserDn are right. Nothing was removed")

// pageSender collects entries and sends them page by page, while the next page is being read.
type pageSender struct {
	ctx      context.Context
	doorward *Doorward
	page     Page
	members  int
	pages    chan Page
	result   chan error
	count    int
}

func (m *syncState) newSender(ctx context.Context, syncID string) *pageSender {
	s := &pageSender{ctx: ctx, doorward: m.doorward, page: Page{SyncID: syncID}, pages: make(chan Page, 1),
		result: make(chan error, 1)}
	go func() {
		var failed error
		for p := range s.pages {
			if failed == nil {
				failed = s.doorward.Send(s.ctx, p)
			}
		}
		s.result <- failed
	}()
	return s
}

// flush sends the current page.
func (s *pageSender) flush() {
	s.count += len(s.page.Accounts) + len(s.page.Groups)
	s.pages <- s.page
	s.page, s.members = Page{SyncID: s.page.SyncID}, 0
}

// addAccount adds an account to the page, and sends a full page.
func (s *pageSender) addAccount(a Account) {
	if s.page.Accounts = append(s.page.Accounts, a); len(s.page.Accounts) >= maxAccounts {
		s.flush()
	}
}

// addGroup adds a group to the page, and sends a full page.
func (s *pageSender) addGroup(g Group) {
	if len(s.page.Groups) >= maxGroups || s.members+len(g.Members) > maxMembers && len(s.page.Groups) > 0 {
		s.flush()
	}
	s.page.Groups, s.members = append(s.page.Groups, g), s.members+len(g.Members)
}

// close sends the last page, and waits until all pages are sent. A complete sync ends with a page of
// its own: where Doorward holds the sync, all that has changed has been sent all the same. A sync
// that failed is not marked as complete, so that Doorward deletes nothing.
func (s *pageSender) close(complete bool, failed error) error {
	if failed == nil && (!complete || len(s.page.Accounts)+len(s.page.Groups) > 0) {
		s.flush()
	}
	if failed == nil && complete {
		s.page.Complete = true
		s.flush()
	}
	close(s.pages)
	return errors.Join(failed, <-s.result)
}

// fullSync sends all accounts and groups (full comparison): what is not among them is absent at
// Doorward afterwards. A sync that Doorward holds, because too many would be, is no failure: changes
// go on, and the next search for deletions is another full sync.
func (m *syncState) fullSync(ctx context.Context) (err error) {
	started := time.Now()
	// The maps are cleared and filled again, as the agent has no memory for two of each. They are
	// incomplete until the sync ends: if it fails, the next one is a full sync again.
	m.fullSyncAt = time.Time{}
	clear(m.accounts)
	clear(m.byName)
	m.highWater, m.seenAtHighWater, m.highWaterClosed = "", map[entryID]struct{}{}, false
	sender := m.newSender(ctx, rand.Text())
	settings := m.settings
	m.searches++
	err = m.searchEntries(ctx, settings.accountBase(), settings.accountFilter(), settings.accountAttributes(),
		func(entry *ldap.Entry) error {
			e, err := settings.idOf(entry)
			if err != nil {
				return err
			}
			m.recordName(e, entry)
			m.recordChange(e, entry)
			sender.addAccount(settings.account(e, entry))
			return nil
		})
	if err == nil && len(m.accounts) == 0 {
		err = errNoAccounts
	}
	if err == nil {
		err = m.sendGroups(ctx, sender)
	}
	err = sender.close(true, err)
	if m.held = nil; isHeld(err) {
		m.held, err = err, nil
		slog.WarnContext(ctx, "Doorward holds the synchronization; nobody was removed, and changes go on",
			"reason", m.held.Error())
	}
	if err != nil {
		return err
	}
	m.sent += sender.count
	m.fullSyncAt, m.deletionsCheckedAt = time.Now(), time.Now()
	slog.InfoContext(ctx, "full comparison done",
		"accounts", len(m.accounts), "groups", len(m.groups), "seconds", time.Since(started).Seconds())
	return nil
}

// recordChange updates the greatest value of the change attribute.
func (m *syncState) recordChange(e entryID, entry *ldap.Entry) {
	changed := entry.GetEqualFoldAttributeValue(m.settings.changeAttribute())
	switch {
	case changed == "" || m.isOlder(changed, m.highWater):
	case changed == m.highWater:
		m.seenAtHighWater[e] = struct{}{}
	default:
		m.highWater, m.seenAtHighWater, m.highWaterReadAt = changed, map[entryID]struct{}{e: {}}, time.Now()
	}
}

// isOlder compares two values of the change attribute.
func (m *syncState) isOlder(a, b string) bool {
	if !m.settings.isAD() {
		return a < b
	}
	x, _ := strconv.ParseInt(a, 10, 64)
	y, _ := strconv.ParseInt(b, 10, 64)
	return x < y
}

// groupNode is a group before nested groups are expanded.
type groupNode struct {
	group   Group
	members []nameHash
}

// sendGroups reads all groups and sends them with their members, including those of nested groups.
func (m *syncState) sendGroups(ctx context.Context, sender *pageSender) error {
	nodes := map[entryID]*groupNode{}
	byName := map[nameHash]entryID{}
	settings := m.settings
	byUser := settings.membersRDN() == "memberUid"
	m.searches++
	err := m.searchEntries(ctx, settings.groupBase(), settings.groupFilter(), settings.groupAttributes(),
		func(entry *ldap.Entry) error {
			e, err := settings.idOf(entry)
			if err != nil {
				return err
			}
			m.recordChange(e, entry)
			n := &groupNode{group: Group{ExternalID: e.String(), Name: firstValue(entry, settings.Groups.NameRDN),
				Description: firstValue(entry, settings.Groups.DescriptionRDN)}}
			members, err := m.membersOf(ctx, entry)
			if err != nil {
				return err
			}
			n.members = make([]nameHash, len(members))
			for i, member := range members {
				if byUser {
					n.members[i] = hashText(member)
				} else {
					n.members[i] = hashDN(member)
				}
			}
			nodes[e], byName[hashDN(entry.DN)] = n, e
			return nil
		})
	if err != nil {
		return err
	}
	m.groups = make(map[entryID]struct{}, len(nodes))
	for e, n := range nodes {
		m.groups[e] = struct{}{}
		n.group.Members = m.expandNestedGroups(e, nodes, byName)
		sender.addGroup(n.group)
	}
	return nil
}

// expandNestedGroups returns the accounts of a group and of the groups nested in it. Each group is
// expanded once, also in a cycle of groups.
func (m *syncState) expandNestedGroups(
	top entryID, nodes map[entryID]*groupNode, byName map[nameHash]entryID,
) []string {
	entered := map[entryID]bool{top: true}
	seen := map[entryID]bool{}
	members := []string{}
	for queue := []entryID{top}; len(queue) > 0; queue = queue[1:] {
		for _, name := range nodes[queue[0]].members {
			if account, ok := m.byName[name]; ok && !seen[account] {
				seen[account] = true
				members = append(members, account.String())
			} else if inner, ok := byName[name]; ok && !entered[inner] {
				entered[inner] = true
				queue = append(queue, inner)
			}
		}
	}
	return members
}

// membersOf reads the members of a group. Active Directory returns a large number of them in
// ranges.
func (m *syncState) membersOf(ctx context.Context, entry *ldap.Entry) ([]string, error) {
	name := m.settings.membersRDN()
	members := entry.GetEqualFoldAttributeValues(name)
	if !m.settings.isAD() || len(members) > 0 {
		return members, nil
	}
	for found := entry; ; {
		values, more := rangedValues(found, name)
		members = append(members, values...)
		if !more {
			return members, nil
		}
		m.searches++
		result, err := m.search(ctx, ldap.NewSearchRequest(entry.DN, ldap.ScopeBaseObject, ldap.NeverDerefAliases, 1, 0,
			false, "(objectClass=*)",
			[]string{fmt.Sprintf("%s;range=%d-*", name, len(members))}, nil))
		if err != nil || len(result.Entries) != 1 {
			return nil, errors.Join(fmt.Errorf("read all members of %s", entry.DN), err)
		}
		found = result.Entries[0]
	}
}

// incrementalSync sends the entries that have changed since the last sync, found by one search,
// and, once in cfg.Deletions, the deletions. Once in cfg.Full (a day by default) it runs fullSync
// instead.
func (m *syncState) incrementalSync(ctx context.Context) error {
	deletionsDue := time.Since(m.deletionsCheckedAt) >= m.cfg.Deletions
	if m.fullSyncAt.IsZero() || time.Since(m.fullSyncAt) >= m.cfg.Full || m.highWater == "" || deletionsDue &&
		m.held != nil {
		return m.fullSync(ctx)
	}
	settings := m.settings
	from, started := m.highWater, time.Now()
	var processed map[entryID]struct{}
	if m.highWaterClosed {
		processed = m.seenAtHighWater
	}
	filter := "(&(" + settings.changeAttribute() + ">=" + ldap.EscapeFilter(from) + ")(|" + settings.accountFilter() +
		settings.groupFilter() + "))"
	attributes := append(settings.accountAttributes(), settings.groupAttributes()...)
	sender := m.newSender(ctx, "")
	groupsChanged := false
	m.searches++
	err := m.searchEntries(ctx, settings.BaseDN, filter, attributes, func(entry *ldap.Entry) error {
		e, err := settings.idOf(entry)
		if err != nil {
			return err
		}
		if _, known := processed[e]; known && entry.GetEqualFoldAttributeValue(settings.changeAttribute()) == from {
			return nil
		}
		m.recordChange(e, entry)
		if settings.isGroup(entry) {
			groupsChanged = groupsChanged || isBelow(entry.DN, settings.groupBase())
			return nil
		}
		if !isBelow(entry.DN, settings.accountBase()) {
			return nil
		}
		m.recordName(e, entry)
		sender.addAccount(settings.account(e, entry))
		return nil
	})
	if err == nil && groupsChanged {
		err = m.sendGroups(ctx, sender)
	}
	if err == nil && deletionsDue {
		err = m.sendDeletions(ctx, sender)
	}
	err = sender.close(false, err)
	if isHeld(err) {
		return m.fullSync(ctx) // by which Doorward decides, and which sends what the held page had
	}
	if err != nil {
		m.highWater, m.highWaterClosed = from, false // the next sync starts from the same point
		return err
	}
	m.highWaterClosed = settings.isAD() || started.Sub(m.highWaterReadAt) > changeTimeResolution
	m.sent += sender.count
	return nil
}

// recordName records the distinguished name of an account, by which groups refer to members.
func (m *syncState) recordName(e entryID, entry *ldap.Entry) {
	if former, ok := m.accounts[e]; ok && m.byName[former] == e {
		delete(m.byName, former)
	}
	name := hashDN(entry.DN)
	m.accounts[e], m.byName[name] = name, e
	if user := entry.GetEqualFoldAttributeValue(m.settings.Accounts.UsernameRDN); user != "" &&
		m.settings.membersRDN() == "memberUid" {
		m.byName[hashText(user)] = e
	}
}

// sendDeletions reads the ids of all entries, and sends as deleted those that are not among them:
// they were deleted, or do not match the configuration any more.
func (m *syncState) sendDeletions(ctx context.Context, sender *pageSender) error {
	settings := m.settings
	ids := func(base, filter string) (map[entryID]bool, error) {
		found := map[entryID]bool{}
		m.searches++
		return found, m.searchEntries(ctx, base, filter, settings.idAttributes(), func(entry *ldap.Entry) error {
			e, err := settings.idOf(entry)
			found[e] = true
			return err
		})
	}
	accounts, err := ids(settings.accountBase(), settings.accountFilter())
	if err != nil {
		return err
	}
	if len(accounts) == 0 && len(m.accounts) > 0 {
		return errNoAccounts
	}
	groups, err := ids(settings.groupBase(), settings.groupFilter())
	if err != nil {
		return err
	}
	for e, name := range m.accounts {
		if accounts[e] {
			continue
		}
		delete(m.accounts, e)
		if m.byName[name] == e {
			delete(m.byName, name)
		}
		if sender.page.DeletedAccounts = append(sender.page.DeletedAccounts,
			e.String()); len(sender.page.DeletedAccounts) >= maxAccounts {
			sender.flush()
		}
	}
	for e := range m.groups {
		if groups[e] {
			continue
		}
		delete(m.groups, e)
		if sender.page.DeletedGroups = append(sender.page.DeletedGroups,
			e.String()); len(sender.page.DeletedGroups) >= maxAccounts {
			sender.flush()
		}
	}
	// A renamed entry can match the filters newly without a changed change attribute: only a full sync finds that
	// entry.
	if len(accounts) > len(m.accounts) || len(groups) > len(m.groups) {
		m.fullSyncAt = time.Time{}
	}
	m.deletionsCheckedAt = time.Now()
	return nil
}
