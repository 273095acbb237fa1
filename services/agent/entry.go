package agent

import (
	"hash/maphash"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-ldap/ldap/v3"

	"github.com/doorward/doorward/pkg/secure"
)

// accountAttributes are the LDAP attributes that are requested of accounts.
func (s Settings) accountAttributes() []string {
	a := s.Accounts
	return s.requestedAttributes(a.EmailRDN, a.GivenNameRDN, a.MiddleNameRDN, a.SurnameRDN, a.UsernameRDN,
		a.PasswordRDN, "userAccountControl", "pwdAccountLockedTime", "nsAccountLock")
}

// groupAttributes are the LDAP attributes that are requested of groups.
func (s Settings) groupAttributes() []string {
	return s.requestedAttributes(s.Groups.NameRDN, s.Groups.DescriptionRDN, s.membersRDN())
}

// requestedAttributes are the named attributes that are configured, and those that are requested
// of every entry.
func (s Settings) requestedAttributes(names ...string) []string {
	all := append(append(names, s.idAttributes()...), s.changeAttribute(), "objectClass")
	return slices.DeleteFunc(all, func(name string) bool { return name == "" })
}

// firstValue is the first value of an attribute as text; nil for none.
func firstValue(entry *ldap.Entry, name string) *string {
	if name == "" {
		return nil
	}
	text := strings.ToValidUTF8(entry.GetEqualFoldAttributeValue(name), "\uFFFD")
	if text == "" {
		return nil
	}
	return &text
}

// account maps an entry to an account (attribute mapping).
func (s Settings) account(e entryID, entry *ldap.Entry) Account {
	a := s.Accounts
	return Account{
		ExternalID: e.String(), Username: firstValue(entry, a.UsernameRDN), Email: firstValue(entry, a.EmailRDN),
		GivenName: firstValue(entry, a.GivenNameRDN), MiddleName: firstValue(entry, a.MiddleNameRDN),
		Surname: firstValue(entry, a.SurnameRDN), Disabled: isDisabled(entry),
		PasswordHash: passwordHash(entry, a.PasswordRDN),
	}
}

var (
	// bcryptHash and iteratedHash are formats that Doorward imports unchanged
	// (docs/interface/accounts.md#password-hashes).
	bcryptHash   = regexp.MustCompile(`^\$2[abxy]\$\d\d\$[./A-Za-z0-9]{53}$`)
	iteratedHash = regexp.MustCompile(
		`^\$[a-z]+2\$(MD5|SHA-1|SHA-256|SHA-384|SHA-512)\$\d+\$[A-Za-z0-9+/=]*\$[A-Za-z0-9+/=]+$`)
	// schemeHash is a value of userPassword with its scheme in braces (RFC 2307).
	schemeHash = regexp.MustCompile(`^\{([A-Za-z0-9]+)\}(.+)$`)
	// unsaltedSchemes are the algorithms of hashes without salt, by their scheme.
	unsaltedSchemes = map[string]string{"MD5": "MD5", "SHA": "SHA-1", "SHA256": "SHA-256", "SHA384": "SHA-384",
		"SHA512": "SHA-512"}
)

// passwordHash returns the password hash of an entry in a format that Doorward can compare; nil
// where there is none, or several. It never returns a value in another format, which may be a
// plain password.
func passwordHash(entry *ldap.Entry, name string) *secure.Secret {
	if name == "" {
		return nil
	}
	values := entry.GetEqualFoldAttributeValues(name)
	if len(values) != 1 {
		return nil
	}
	text, scheme := values[0], ""
	if parts := schemeHash.FindStringSubmatch(text); parts != nil {
		scheme, text = strings.ToUpper(parts[1]), parts[2]
	}
	if algorithm := unsaltedSchemes[scheme]; algorithm != "" {
		text = "$service2$" + algorithm + "$1$$" + text
	}
	if !bcryptHash.MatchString(text) && !iteratedHash.MatchString(text) {
		return nil
	}
	hash := secure.Secret(text)
	return &hash
}

const (
	// accountDisabled is the bit of userAccountControl of a disabled account (Active Directory).
	accountDisabled = 2
	// lockedPermanently is the pwdAccountLockedTime of an account that an administrator has locked.
	lockedPermanently = "000001010000Z"
)

// isDisabled reports whether an entry is disabled, or locked by an administrator, at the directory
// server.
func isDisabled(entry *ldap.Entry) bool {
	control, _ := strconv.ParseInt(entry.GetEqualFoldAttributeValue("userAccountControl"), 10, 64)
	return control&accountDisabled != 0 ||
		entry.GetEqualFoldAttributeValue("pwdAccountLockedTime") == lockedPermanently ||
		strings.EqualFold(entry.GetEqualFoldAttributeValue("nsAccountLock"), "true")
}

// isGroup reports whether an entry is a group and no account, by its object classes.
func (s Settings) isGroup(entry *ldap.Entry) bool {
	has := func(class string) bool {
		return slices.ContainsFunc(entry.GetEqualFoldAttributeValues("objectClass"),
			func(c string) bool { return strings.EqualFold(c, class) })
	}
	return has(s.Groups.ObjectClass) && !has(s.Accounts.ObjectClass)
}

var seed = maphash.MakeSeed()

// nameHash is a hash of the name of an entry. It takes 8 bytes, so that half a million of them fit
// into memory.
type nameHash uint64

// hashDN hashes a distinguished name. All spellings of a name have the same hash.
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

// isBelow reports whether a distinguished name is the base or below it.
func isBelow(dn, base string) bool {
	name, err := ldap.ParseDN(dn)
	if err != nil {
		return false
	}
	of, err := ldap.ParseDN(base)
	return err == nil && (of.EqualFold(name) || of.AncestorOfFold(name))
}

// rangedValues returns the values of an attribute of which the server returned a range (Active
// Directory, range retrieval), and whether there are more.
func rangedValues(entry *ldap.Entry, name string) (values []string, more bool) {
	for _, attribute := range entry.Attributes {
		base, option, isRange := strings.Cut(attribute.Name, ";range=")
		if isRange && strings.EqualFold(base, name) {
			return attribute.Values, !strings.HasSuffix(option, "-*")
		}
	}
	return nil, false
}
