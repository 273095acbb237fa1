package agent

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/go-ldap/ldap/v3"
)

const (
	pageSize     = 1000
	maxReferrals = 3 // that lead to one another
)

// each calls take for every entry that a search finds, a page at a time (paged results,
// RFC 2696).
func (s *server) each(ctx context.Context, base, filter string, attributes []string, take func(*ldap.Entry) error) error {
	return s.eachAt(ctx, s.address(), base, filter, attributes, take, 0)
}

func (s *server) eachAt(ctx context.Context, address, base, filter string, attributes []string, take func(*ldap.Entry) error,
	depth int) error {
	conn, err := s.bound(ctx, address)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	paging := ldap.NewControlPaging(pageSize)
	var referrals []string
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		setTimeout(ctx, conn, searchTimeout)
		result, err := conn.Search(ldap.NewSearchRequest(base, ldap.ScopeWholeSubtree, ldap.NeverDerefAliases, 0, 0, false, filter, attributes,
			[]ldap.Control{paging}))
		if ldap.IsErrorWithCode(err, ldap.LDAPResultReferral) {
			return fmt.Errorf("search %s: %w", base, errReferral)
		}
		if err != nil {
			return fmt.Errorf("search %s: %w", base, err)
		}
		referrals = append(referrals, result.Referrals...)
		for _, entry := range result.Entries {
			if err := take(entry); err != nil {
				return err
			}
		}
		next, ok := ldap.FindControl(result.Controls, ldap.ControlTypePaging).(*ldap.ControlPaging)
		if !ok || len(next.Cookie) == 0 {
			break
		}
		paging.SetCookie(next.Cookie)
	}
	return s.follow(ctx, referrals, filter, attributes, take, depth)
}

// follow goes on with a search where referrals lead, if the configuration says
// so. To another host it goes only when that is listed.
func (s *server) follow(ctx context.Context, referrals []string, filter string, attributes []string, take func(*ldap.Entry) error,
	depth int) error {
	if s.settings.ReferralMode != "follow" {
		return nil
	}
	for _, referral := range referrals {
		address, base, err := readReferral(referral, s.settings.SSLRequired)
		if err == nil && (depth >= maxReferrals || !s.mayFollow(address)) {
			err = fmt.Errorf("%w, %s, which DOORWARD_AGENT_REFERRAL_HOSTS does not list", errReferral, address)
		}
		if err == nil {
			err = s.eachAt(ctx, address, base, filter, attributes, take, depth+1)
		}
		if err != nil && !s.settings.IgnoreReferralIssues {
			return err
		}
	}
	return nil
}

// readReferral reads the address and the base of an LDAP URL (RFC 4516).
func readReferral(text string, secured bool) (address, base string, err error) {
	referral, err := url.Parse(text)
	if err != nil || referral.Host == "" || (referral.Scheme != "ldap" && referral.Scheme != "ldaps") {
		return "", "", fmt.Errorf("%w by %q, which is no address of a directory server", errReferral, text)
	}
	port := referral.Port()
	switch {
	case port == "" && (secured || referral.Scheme == "ldaps"):
		port = "636"
	case port == "":
		port = "389"
	}
	return net.JoinHostPort(referral.Hostname(), port), strings.TrimPrefix(referral.Path, "/"), nil
}

// under is a base with an optional part below it.
func under(suffix, base string) string {
	if suffix == "" {
		return base
	}
	return suffix + "," + base
}

// matching is the filter of a class with an optional further condition.
func matching(class, filter string) string {
	condition := ""
	if filter = strings.TrimSpace(filter); filter != "" {
		if condition = filter; !strings.HasPrefix(filter, "(") {
			condition = "(" + filter + ")"
		}
	}
	return "(&(objectClass=" + ldap.EscapeFilter(class) + ")" + condition + ")"
}

func (s Settings) accountFilter() string {
	return matching(s.Accounts.ObjectClass, s.Accounts.ObjectFilter)
}

func (s Settings) groupFilter() string { return matching(s.Groups.ObjectClass, s.Groups.ObjectFilter) }

func (s Settings) accountBase() string { return under(s.Accounts.DNSuffix, s.BaseDN) }

func (s Settings) groupBase() string { return under(s.Groups.DNSuffix, s.BaseDN) }

// membersRDN is the attribute of a group that names its members.
func (s Settings) membersRDN() string {
	switch class := strings.ToLower(s.Groups.ObjectClass); {
	case s.Groups.MembersRDN != "":
		return s.Groups.MembersRDN
	case class == "groupofuniquenames":
		return "uniqueMember"
	case class == "posixgroup":
		return "memberUid"
	}
	return "member"
}

// entryID identifies an entry for ever, whatever becomes of its name.
type entryID [16]byte

func (e entryID) String() string {
	h := hex.EncodeToString(e[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

func parseID(text string) (e entryID, err error) {
	raw, err := hex.DecodeString(strings.ReplaceAll(text, "-", ""))
	if err != nil || len(raw) != len(e) {
		return e, errors.New("not an id of an entry")
	}
	return entryID(raw), nil
}

// Attributes that identify an entry, by server: OpenLDAP and most others, 389
// Directory Server, Active Directory.
const (
	entryUUID  = "entryUUID"
	nsUniqueID = "nsUniqueId"
	objectGUID = "objectGUID"
)

// idOf returns the id of an entry.
func (s Settings) idOf(entry *ldap.Entry) (e entryID, err error) {
	if s.isAD() {
		raw := entry.GetRawAttributeValue(objectGUID)
		if len(raw) != len(e) {
			return e, fmt.Errorf("the entry %s has no objectGUID that the agent may read", entry.DN)
		}
		return entryID(raw), nil
	}
	for _, name := range []string{entryUUID, nsUniqueID} {
		if value := entry.GetEqualFoldAttributeValue(name); value != "" {
			if e, err = parseID(value); err == nil {
				return e, nil
			}
		}
	}
	return e, fmt.Errorf("the entry %s has no entryUUID or nsUniqueId that the agent may read", entry.DN)
}

// idFilter finds an entry by its id.
func (s Settings) idFilter(e entryID) string {
	if s.isAD() {
		var filter strings.Builder
		filter.WriteString("(" + objectGUID + "=")
		for _, b := range e {
			fmt.Fprintf(&filter, `\%02x`, b)
		}
		return filter.String() + ")"
	}
	h := hex.EncodeToString(e[:])
	return "(|(" + entryUUID + "=" + e.String() + ")(" + nsUniqueID + "=" + h[:8] + "-" + h[8:16] + "-" + h[16:24] + "-" + h[24:] + "))"
}

// idAttributes are those that idOf reads.
func (s Settings) idAttributes() []string {
	if s.isAD() {
		return []string{objectGUID}
	}
	return []string{entryUUID, nsUniqueID}
}

// changeAttribute grows with every change of an entry.
func (s Settings) changeAttribute() string {
	if s.isAD() {
		return "uSNChanged"
	}
	return "modifyTimestamp"
}
