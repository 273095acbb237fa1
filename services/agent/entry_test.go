package agent

import (
	"testing"

	"github.com/go-ldap/ldap/v3"
)

func TestIDsOfEntries(t *testing.T) {
	raw := []byte{0x2a, 0x28, 0x29, 0x5c, 0, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
	entry := ldap.NewEntry("cn=x", nil)
	entry.Attributes = []*ldap.EntryAttribute{{Name: "objectGUID", ByteValues: [][]byte{raw}}}
	ad := Settings{ProviderID: "ad"}
	e, err := ad.idOf(entry)
	if err != nil || e.String() != "2a28295c-0005-0607-0809-0a0b0c0d0e0f" {
		t.Errorf("idOf = %s, %v", e, err)
	}
	if filter := ad.idFilter(e); filter != `(objectGUID=\2a\28\29\5c\00\05\06\07\08\09\0a\0b\0c\0d\0e\0f)` {
		t.Errorf("the filter is %s", filter)
	}
	if back, err := parseID(e.String()); err != nil || back != e {
		t.Errorf("parseID = %s, %v", back, err)
	}
	other := ldap.NewEntry("cn=x", map[string][]string{"entryuuid": {"2a28295c-0005-0607-0809-0a0b0c0d0e0f"}})
	if e2, err := (Settings{}).idOf(other); err != nil || e2 != e {
		t.Errorf("idOf = %s, %v", e2, err)
	}
	if _, err := (Settings{}).idOf(entry); err == nil {
		t.Error("an entry without an id has one")
	}
	for _, text := range []string{"", "x", "*", "2a28295c", ")(uid=*"} {
		if _, err := parseID(text); err == nil {
			t.Errorf("%q is an id", text)
		}
	}
}

func TestFiltersOfTheConfiguration(t *testing.T) {
	for _, c := range []struct{ class, filter, want string }{
		{"person", "", "(&(objectClass=person))"}, {"person", "(a=b)", "(&(objectClass=person)(a=b))"}, {"person", " a=b ", "(&(objectClass=person)(a=b))"},
		{"p*)(x=y", "", `(&(objectClass=p\2a\29\28x=y))`},
	} {
		if got := classFilter(c.class, c.filter); got != c.want {
			t.Errorf("matching(%q, %q) = %s, want %s", c.class, c.filter, got, c.want)
		}
	}
}

func TestTwoSpellingsOfANameAreOne(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"uid=jo,dc=example,dc=test", "UID=Jo, DC=Example, DC=Test", true}, {`cn=a\2cb,dc=x`, `cn=a\,b,dc=x`, true},
		{"cn=a+uid=b,dc=x", "uid=B+cn=A,dc=x", true}, {"cn=a,dc=x", "cn=a,dc=y", false}, {"cn=ab,dc=x", "cn=a,dc=bx", false}, {"not a name", "Not a Name", true},
	} {
		if got := hashDN(c.a) == hashDN(c.b); got != c.same {
			t.Errorf("%s and %s are the same: %t", c.a, c.b, got)
		}
	}
	if !isBelow("uid=jo,ou=a,dc=x", "OU=A,dc=x") || isBelow("uid=jo,ou=ab,dc=x", "ou=b,dc=x") || !isBelow("ou=a,dc=x", "ou=a,dc=x") {
		t.Error("isBelow is wrong")
	}
}

func TestGroupsInsideOfGroups(t *testing.T) {
	m := &syncState{byName: map[nameHash]entryID{}}
	nodes, names := map[entryID]*groupNode{}, map[nameHash]entryID{}
	for i := range 3 {
		m.byName[nameHash(i)] = entryID{byte(i)}
		nodes[entryID{100 + byte(i)}] = &groupNode{members: []nameHash{nameHash(i), nameHash(100 + (i+1)%3), 999}}
		names[nameHash(100+i)] = entryID{100 + byte(i)}
	}
	for e := range nodes {
		if members := m.expandNestedGroups(e, nodes, names); len(members) != 3 {
			t.Errorf("%s has the members %v", e, members)
		}
	}
}

func TestDisabledEntries(t *testing.T) {
	for _, c := range []struct {
		attribute, value string
		want             bool
	}{
		{"userAccountControl", "514", true}, {"userAccountControl", "512", false}, {"userAccountControl", "66050", true},
		{"pwdAccountLockedTime", "000001010000Z", true}, {"pwdAccountLockedTime", "20260101000000Z", false}, {"nsAccountLock", "TRUE", true},
	} {
		if got := isDisabled(ldap.NewEntry("cn=x", map[string][]string{c.attribute: {c.value}})); got != c.want {
			t.Errorf("%s %s is disabled: %t", c.attribute, c.value, got)
		}
	}
}

func TestReferrals(t *testing.T) {
	s := &server{settings: Settings{DirectoryHost: "dc1.corp", DirectoryPort: 636}, cfg: Config{ReferralHosts: []string{"dc2.corp:636"}}}
	for address, want := range map[string]bool{
		"dc1.corp:636": true, "DC2.corp:636": true, "dc2.corp:389": false, "evil.test:636": false, "dc1.corp.evil.test:636": false, "dc1.corp:6360": false,
	} {
		if s.isReferralAllowed(address) != want {
			t.Errorf("%s may be followed: %t", address, !want)
		}
	}
	address, base, err := readReferral("ldap://dc2.corp/dc=x,dc=y??sub", true)
	if err != nil || address != "dc2.corp:636" || base != "dc=x,dc=y" {
		t.Errorf("readReferral = %s %s %v", address, base, err)
	}
	for _, text := range []string{"http://dc2.corp/", "dc2.corp", "ldap://", "%"} {
		if _, _, err := readReferral(text, true); err == nil {
			t.Errorf("%q is a referral", text)
		}
	}
}

// Nothing but a hash that Doorward can compare leaves the directory server.
func TestPasswordHashes(t *testing.T) {
	const bcrypt = "$2b$10$abcdefghijklmnopqrstuuABCDEFGHIJKLMNOPQRSTUVWXYZ01234"
	for _, c := range []struct {
		values []string
		want   string
	}{
		{[]string{"{CRYPT}" + bcrypt}, bcrypt}, {[]string{"{BCRYPT}" + bcrypt}, bcrypt}, {[]string{bcrypt}, bcrypt},
		{[]string{"{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ="}, "$service2$SHA-1$1$$5en6G6MezRroT3XKqkdPOmY/BfQ="},
		{[]string{"$service2$MD5$1$$6/yL/4bXIDITOJh+cuAmQw=="}, "$service2$MD5$1$$6/yL/4bXIDITOJh+cuAmQw=="},
		{[]string{"{SSHA}0c0blFTXXNuAMHECS4uxrj3ZieMoWImr"}, ""}, {[]string{"{CRYPT}$6$x$y"}, ""}, {[]string{"{SASL}jo@corp"}, ""},
		{[]string{"{CLEARTEXT}secret"}, ""}, {[]string{"secret"}, ""}, {[]string{"$2b$secret"}, ""}, {[]string{"$ecret2$MD5$1"}, ""},
		{[]string{bcrypt, "secret"}, ""}, {nil, ""},
	} {
		got := passwordHash(ldap.NewEntry("cn=x", map[string][]string{"userPassword": c.values}), "userpassword")
		if (got == nil && c.want != "") || (got != nil && got.Reveal() != c.want) {
			t.Errorf("the hash of %q is %v, want %q", c.values, got, c.want)
		}
	}
	entry := ldap.NewEntry("cn=x", map[string][]string{"userPassword": {bcrypt}})
	if passwordHash(entry, "") != nil {
		t.Error("a hash was read that the configuration does not name")
	}
}
