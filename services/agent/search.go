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
	maxReferrals = 3 // in a row
)

// searchEntries calls visit for every entry that a search finds, page by page (paged results, RFC
// 2696), and follows referrals as configured.
func (s *server) searchEntries(
	ctx context.Context, base, filter string, attributes []string, visit func(*ldap.Entry) error,
) error {
	return s.searchEntriesAt(ctx, s.address(), base, filter, attributes, visit, 0)
}

// searchEntriesAt is searchEntries at one server. depth is the number of referrals that led there.
func (s *server) searchEntriesAt(ctx context.Context, address, base, filter string, attributes []string,
	visit func(*ldap.Entry) error,
	depth int) error {
	conn, err := s.dialAsAgent(ctx, address)
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
		result, err := conn.Search(ldap.NewSearchRequest(base, ldap.ScopeWholeSubtree, ldap.NeverDerefAliases, 0, 0,
			false, filter, attributes,
			[]ldap.Control{paging}))
		if ldap.IsErrorWithCode(err, ldap.LDAPResultReferral) {
			return fmt.Errorf("search %s: %w", base, errReferral)
		}
		if err != nil {
			return fmt.Errorf("search %s: %w", base, err)
		}
		referrals = append(referrals, result.Referrals...)
		for _, entry := range result.Entries {
			if err := visit(entry); err != nil {
				return err
			}
		}
		next, ok := ldap.FindControl(result.Controls, ldap.ControlTypePaging).(*ldap.ControlPaging)
		if !ok || len(next.Cookie) == 0 {
			break
		}
		paging.SetCookie(next.Cookie)
	}
	return s.followReferrals(ctx, referrals, filter, attributes, visit, depth)
}

// followReferrals continues a search at the servers of its referrals, where the configuration has
// referralMode follow and the server is allowed.
func (s *server) followReferrals(ctx context.Context, referrals []string, filter string, attributes []string,
	visit func(*ldap.Entry) error,
	depth int) error {
	if s.settings.ReferralMode != "follow" {
		return nil
	}
	for _, referral := range referrals {
		address, base, err := readReferral(referral, s.settings.SSLRequired)
		if err == nil && (depth >= maxReferrals || !s.isReferralAllowed(address)) {
			err = fmt.Errorf("%w, %s, which DOORWARD_AGENT_REFERRAL_HOSTS does not list", errReferral, address)
		}
		if err == nil {
			err = s.searchEntriesAt(ctx, address, base, filter, attributes, visit, depth+1)
		}
		if err != nil && !s.settings.IgnoreReferralIssues {
			return err
		}
	}
	return nil
}

// readReferral reads address and base of the LDAP URL of a referral (RFC 4516).
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

// searchBase is the base DN, with an optional suffix below it.
func searchBase(suffix, base string) string {
	if suffix == "" {
		return base
	}
	return suffix + "," + base
}

// classFilter is the filter of an object class with an optional further filter. The object class
// is escaped (LDAP injection).
func classFilter(class, filter string) string {
	condition := ""
	if filter = strings.TrimSpace(filter); filter != "" {
		if condition = filter; !strings.HasPrefix(filter, "(") {
			condition = "(" + filter + ")"
		}
	}
	return "(&(objectClass=" + ldap.EscapeFilter(class) + ")" + condition + ")"
}

func (s Settings) accountFilter() string {
	return classFilter(s.Accounts.ObjectClass, s.Accounts.ObjectFilter)
}

func (s Settings) groupFilter() string {
	return classFilter(s.Groups.ObjectClass, s.Groups.ObjectFilter)
}

func (s Settings) accountBase() string { return searchBase(s.Accounts.DNSuffix, s.BaseDN) }

func (s Settings) groupBase() string { return searchBase(s.Groups.DNSuffix, s.BaseDN) }

// membersRDN is the attribute of a group with its members.
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

// entryID identifies an entry permanently, also after a rename.
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

// The attributes that identify an entry: of OpenLDAP and most servers, of 389 Directory Server, and
// of Active Directory.
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

// idFilter is the filter that finds an entry by its id.
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
	unique := h[:8] + "-" + h[8:16] + "-" + h[16:24] + "-" + h[24:]
	return "(|(" + entryUUID + "=" + e.String() + ")(" + nsUniqueID + "=" + unique + "))"
}

// idAttributes are the attributes that idOf reads.
func (s Settings) idAttributes() []string {
	if s.isAD() {
		return []string{objectGUID}
	}
	return []string{entryUUID, nsUniqueID}
}

// changeAttribute is the attribute whose value increases with every change of an entry.
func (s Settings) changeAttribute() string {
	if s.isAD() {
		return "uSNChanged"
	}
	return "modifyTimestamp"
}
