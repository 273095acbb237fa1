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
	// resolution is in what time an entry can change twice and have one
	// modifyTimestamp, which counts seconds.
	resolution = 2 * time.Second
)

// mirror is what the agent has sent, as far as it needs that to find changes. It
// lives in memory: after a start everything is compared once.
type mirror struct {
	*server
	doorward *Doorward

	accounts map[entryID]nameHash
	byName   map[nameHash]entryID // of accounts
	groups   map[entryID]struct{}
	newest   string               // greatest value of the change attribute
	atNewest map[entryID]struct{} // entries that have it
	newestAt time.Time            // when it was first seen
	settled  bool                 // whether no further entry can get it
	fullAt   time.Time            // when the last full comparison ended
	goneAt   time.Time            // when deletions were last looked for
	searches int                  // that were made, for tests and metrics
	sent     int                  // entries
}

func newMirror(s *server, d *Doorward) *mirror {
	return &mirror{server: s, doorward: d, accounts: map[entryID]nameHash{}, byName: map[nameHash]entryID{}}
}

// errEmpty keeps a search that finds nothing from removing everything.
var errEmpty = errors.New("the search found no account; see that baseDn, accountConfig and the rights of agentUserDn are right. " +
	"Nothing was removed")

// sender gathers entries and sends them a page at a time, while the next page is
// read.
type sender struct {
	ctx      context.Context
	doorward *Doorward
	page     Page
	members  int
	pages    chan Page
	ended    chan error
	count    int
}

func (m *mirror) newSender(ctx context.Context, syncID string) *sender {
	s := &sender{ctx: ctx, doorward: m.doorward, page: Page{SyncID: syncID}, pages: make(chan Page, 1), ended: make(chan error, 1)}
	go func() {
		var failed error
		for p := range s.pages {
			if failed == nil {
				failed = s.doorward.Send(s.ctx, p)
			}
		}
		s.ended <- failed
	}()
	return s
}

func (s *sender) flush() {
	s.count += len(s.page.Accounts) + len(s.page.Groups)
	s.pages <- s.page
	s.page, s.members = Page{SyncID: s.page.SyncID}, 0
}

func (s *sender) account(a Account) {
	if s.page.Accounts = append(s.page.Accounts, a); len(s.page.Accounts) >= maxAccounts {
		s.flush()
	}
}

func (s *sender) group(g Group) {
	if len(s.page.Groups) >= maxGroups || s.members+len(g.Members) > maxMembers && len(s.page.Groups) > 0 {
		s.flush()
	}
	s.page.Groups, s.members = append(s.page.Groups, g), s.members+len(g.Members)
}

// end sends what is left, and waits until all is sent. A sync that failed is not
// complete.
func (s *sender) end(complete bool, failed error) error {
	if failed == nil {
		s.page.Complete = complete
		s.flush()
	}
	close(s.pages)
	return errors.Join(failed, <-s.ended)
}

// full compares everything: what Doorward has and the directory server has not is
// removed there.
func (m *mirror) full(ctx context.Context) (err error) {
	started := time.Now()
	// The maps are filled again where they are: two of each are more memory than the
	// agent may have. Without a whole comparison they are of no use.
	m.fullAt = time.Time{}
	clear(m.accounts)
	clear(m.byName)
	m.newest, m.atNewest, m.settled = "", map[entryID]struct{}{}, false
	out := m.newSender(ctx, rand.Text())
	settings := m.settings
	m.searches++
	err = m.each(ctx, settings.accountBase(), settings.accountFilter(), settings.accountAttributes(), func(entry *ldap.Entry) error {
		e, err := settings.idOf(entry)
		if err != nil {
			return err
		}
		m.learn(e, entry)
		m.note(e, entry)
		out.account(settings.account(e, entry))
		return nil
	})
	if err == nil && len(m.accounts) == 0 {
		err = errEmpty
	}
	if err == nil {
		err = m.sendGroups(ctx, out)
	}
	if err = out.end(true, err); err != nil {
		return err
	}
	m.sent += out.count
	m.fullAt, m.goneAt = time.Now(), time.Now()
	slog.InfoContext(ctx, "full comparison done",
		"accounts", len(m.accounts), "groups", len(m.groups), "seconds", time.Since(started).Seconds())
	return nil
}

// note records the newest change.
func (m *mirror) note(e entryID, entry *ldap.Entry) {
	changed := entry.GetEqualFoldAttributeValue(m.settings.changeAttribute())
	switch {
	case changed == "" || m.older(changed, m.newest):
	case changed == m.newest:
		m.atNewest[e] = struct{}{}
	default:
		m.newest, m.atNewest, m.newestAt = changed, map[entryID]struct{}{e: {}}, time.Now()
	}
}

// older compares two values of the change attribute.
func (m *mirror) older(a, b string) bool {
	if !m.settings.isAD() {
		return a < b
	}
	x, _ := strconv.ParseInt(a, 10, 64)
	y, _ := strconv.ParseInt(b, 10, 64)
	return x < y
}

// node is a group as it is read, before groups inside of groups are followed.
type node struct {
	group   Group
	members []nameHash
}

// sendGroups reads all groups and sends them with their members, those of groups
// inside of them too.
func (m *mirror) sendGroups(ctx context.Context, out *sender) error {
	nodes := map[entryID]*node{}
	byName := map[nameHash]entryID{}
	settings := m.settings
	byUser := settings.membersRDN() == "memberUid"
	m.searches++
	err := m.each(ctx, settings.groupBase(), settings.groupFilter(), settings.groupAttributes(), func(entry *ldap.Entry) error {
		e, err := settings.idOf(entry)
		if err != nil {
			return err
		}
		m.note(e, entry)
		n := &node{group: Group{ExternalID: e.String(), Name: value(entry, settings.Groups.NameRDN),
			Description: value(entry, settings.Groups.DescriptionRDN)}}
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
		n.group.Members = m.unfold(e, nodes, byName)
		out.group(n.group)
	}
	return nil
}

// unfold returns the accounts of a group and of the groups inside of it. Each
// group is entered once, also where groups contain one another.
func (m *mirror) unfold(top entryID, nodes map[entryID]*node, byName map[nameHash]entryID) []string {
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

// membersOf reads the members of a group. Active Directory returns many of them a
// range at a time.
func (m *mirror) membersOf(ctx context.Context, entry *ldap.Entry) ([]string, error) {
	name := m.settings.membersRDN()
	members := entry.GetEqualFoldAttributeValues(name)
	if !m.settings.isAD() || len(members) > 0 {
		return members, nil
	}
	for found := entry; ; {
		values, more := ranged(found, name)
		members = append(members, values...)
		if !more {
			return members, nil
		}
		m.searches++
		result, err := m.search(ctx, ldap.NewSearchRequest(entry.DN, ldap.ScopeBaseObject, ldap.NeverDerefAliases, 1, 0, false, "(objectClass=*)",
			[]string{fmt.Sprintf("%s;range=%d-*", name, len(members))}, nil))
		if err != nil || len(result.Entries) != 1 {
			return nil, errors.Join(fmt.Errorf("read all members of %s", entry.DN), err)
		}
		found = result.Entries[0]
	}
}

// poll is the incremental sync: it looks for changes with one search, now and then for
// deletions, and once a day runs a full sync.
func (m *mirror) poll(ctx context.Context) error {
	if m.fullAt.IsZero() || time.Since(m.fullAt) >= m.cfg.Full || m.newest == "" {
		return m.full(ctx)
	}
	settings := m.settings
	from, began := m.newest, time.Now()
	var processed map[entryID]struct{}
	if m.settled {
		processed = m.atNewest
	}
	filter := "(&(" + settings.changeAttribute() + ">=" + ldap.EscapeFilter(from) + ")(|" + settings.accountFilter() +
		settings.groupFilter() + "))"
	attributes := append(settings.accountAttributes(), settings.groupAttributes()...)
	out := m.newSender(ctx, "")
	groupsChanged := false
	m.searches++
	err := m.each(ctx, settings.BaseDN, filter, attributes, func(entry *ldap.Entry) error {
		e, err := settings.idOf(entry)
		if err != nil {
			return err
		}
		if _, known := processed[e]; known && entry.GetEqualFoldAttributeValue(settings.changeAttribute()) == from {
			return nil
		}
		m.note(e, entry)
		if settings.isGroup(entry) {
			groupsChanged = groupsChanged || isBelow(entry.DN, settings.groupBase())
			return nil
		}
		if !isBelow(entry.DN, settings.accountBase()) {
			return nil
		}
		m.learn(e, entry)
		out.account(settings.account(e, entry))
		return nil
	})
	if err == nil && groupsChanged {
		err = m.sendGroups(ctx, out)
	}
	if err == nil && time.Since(m.goneAt) >= m.cfg.Deletions {
		err = m.findDeleted(ctx, out)
	}
	if err = out.end(false, err); err != nil {
		m.newest, m.settled = from, false // the next poll begins where this one did
		return err
	}
	m.settled = settings.isAD() || began.Sub(m.newestAt) > resolution
	m.sent += out.count
	return nil
}

// learn records the name of an account.
func (m *mirror) learn(e entryID, entry *ldap.Entry) {
	if former, ok := m.accounts[e]; ok && m.byName[former] == e {
		delete(m.byName, former)
	}
	name := hashDN(entry.DN)
	m.accounts[e], m.byName[name] = name, e
	if user := entry.GetEqualFoldAttributeValue(m.settings.Accounts.UsernameRDN); user != "" && m.settings.membersRDN() == "memberUid" {
		m.byName[hashText(user)] = e
	}
}

// findDeleted reads the ids of all entries: what is not among them is gone, or
// does not match the configuration any more.
func (m *mirror) findDeleted(ctx context.Context, out *sender) error {
	settings := m.settings
	ids := func(base, filter string) (map[entryID]bool, error) {
		found := map[entryID]bool{}
		m.searches++
		return found, m.each(ctx, base, filter, settings.idAttributes(), func(entry *ldap.Entry) error {
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
		return errEmpty
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
		if out.page.DeletedAccounts = append(out.page.DeletedAccounts, e.String()); len(out.page.DeletedAccounts) >= maxAccounts {
			out.flush()
		}
	}
	for e := range m.groups {
		if groups[e] {
			continue
		}
		delete(m.groups, e)
		if out.page.DeletedGroups = append(out.page.DeletedGroups, e.String()); len(out.page.DeletedGroups) >= maxAccounts {
			out.flush()
		}
	}
	// An entry that matches since a rename elsewhere has not changed itself.
	if len(accounts) > len(m.accounts) || len(groups) > len(m.groups) {
		m.fullAt = time.Time{}
	}
	m.goneAt = time.Now()
	return nil
}
