package agent

import (
	"hash/maphash"
	"slices"
	"strconv"
	"strings"

	"github.com/go-ldap/ldap/v3"
)

// attributes are what is read of an account or a group.
func (s Settings) accountAttributes() []string {
	a := s.Accounts
	return s.present(a.EmailRDN, a.GivenNameRDN, a.MiddleNameRDN, a.SurnameRDN, a.UsernameRDN,
		"userAccountControl", "pwdAccountLockedTime", "nsAccountLock")
}

func (s Settings) groupAttributes() []string {
	return s.present(s.Groups.NameRDN, s.Groups.DescriptionRDN, s.membersRDN())
}

// present are the attributes that are named, and those of every entry.
func (s Settings) present(names ...string) []string {
	all := append(append(names, s.idAttributes()...), s.changeAttribute(), "objectClass")
	return slices.DeleteFunc(all, func(name string) bool { return name == "" })
}

// value is the first value of an attribute as text; nil for none.
func value(entry *ldap.Entry, name string) *string {
	if name == "" {
		return nil
	}
	text := strings.ToValidUTF8(entry.GetEqualFoldAttributeValue(name), "\uFFFD")
	if text == "" {
		return nil
	}
	return &text
}

// account makes an account of an entry.
func (s Settings) account(e entryID, entry *ldap.Entry) Account {
	a := s.Accounts
	return Account{
		ExternalID: e.String(), Username: value(entry, a.UsernameRDN), Email: value(entry, a.EmailRDN), GivenName: value(entry, a.GivenNameRDN),
		MiddleName: value(entry, a.MiddleNameRDN), Surname: value(entry, a.SurnameRDN), Disabled: isDisabled(entry),
	}
}

const (
	// accountDisabled is the bit of userAccountControl of an account that may not
	// log in.
	accountDisabled = 2
	// lockedForEver is the pwdAccountLockedTime of an account that an administrator
	// has locked.
	lockedForEver = "000001010000Z"
)

// isDisabled reports whether the server lets nobody in as an entry.
func isDisabled(entry *ldap.Entry) bool {
	control, _ := strconv.ParseInt(entry.GetEqualFoldAttributeValue("userAccountControl"), 10, 64)
	return control&accountDisabled != 0 || entry.GetEqualFoldAttributeValue("pwdAccountLockedTime") == lockedForEver ||
		strings.EqualFold(entry.GetEqualFoldAttributeValue("nsAccountLock"), "true")
}

// isGroup reports whether an entry that is an account or a group is the latter.
func (s Settings) isGroup(entry *ldap.Entry) bool {
	has := func(class string) bool {
		return slices.ContainsFunc(entry.GetEqualFoldAttributeValues("objectClass"), func(c string) bool { return strings.EqualFold(c, class) })
	}
	return has(s.Groups.ObjectClass) && !has(s.Accounts.ObjectClass)
}

var seed = maphash.MakeSeed()

// nameHash is a hash of the name of an entry: as many bytes as half a million of
// them can be held in memory.
type nameHash uint64

// hashDN hashes a distinguished name. Two spellings of one name have one hash.
func hashDN(dn string) nameHash {
	parsed, err := ldap.ParseDN(dn)
	if err != nil {
		return hashText(dn)
	}
	var h maphash.Hash
	h.SetSeed(seed)
	for _, rdn := range parsed.RDNs {
		parts := make([]string, len(rdn.Attributes))
		for i, attribute := range rdn.Attributes {
			parts[i] = strings.ToLower(attribute.Type) + "=" + strings.ToLower(attribute.Value)
		}
		slices.Sort(parts)
		for _, part := range parts {
			_, _ = h.WriteString(part)
			_ = h.WriteByte(0)
		}
		_ = h.WriteByte(1)
	}
	return nameHash(h.Sum64())
}

func hashText(text string) nameHash { return nameHash(maphash.String(seed, strings.ToLower(text))) }

// isBelow reports whether a name is a base or below it.
func isBelow(dn, base string) bool {
	name, err := ldap.ParseDN(dn)
	if err != nil {
		return false
	}
	of, err := ldap.ParseDN(base)
	return err == nil && (of.EqualFold(name) || of.AncestorOfFold(name))
}

// ranged returns the values of an attribute of which the server returns a range,
// and whether there are more.
func ranged(entry *ldap.Entry, name string) (values []string, more bool) {
	for _, attribute := range entry.Attributes {
		base, option, isRange := strings.Cut(attribute.Name, ";range=")
		if isRange && strings.EqualFold(base, name) {
			return attribute.Values, !strings.HasSuffix(option, "-*")
		}
	}
	return nil, false
}
