package connectors_test

import (
	"strings"
	"testing"

	"github.com/doorward/doorward/deploy/e2e/connectors"
)

const person = `dn: ou=people,dc=example,dc=test
objectClass: organizationalUnit
ou: people

dn: uid=jo,ou=people,dc=example,dc=test
objectClass: inetOrgPerson
uid: jo
cn: Jo Doe
sn: Doe
mail: jo@example.test
userPassword: Changeme1!
`

// What the LDAP scenarios build on.
func TestTheDirectoryServersKeepMembers(t *testing.T) {
	t.Run("slapd", func(t *testing.T) {
		server := connectors.StartSlapd(t, authority, person)
		server.Add(t, "dn: cn=staff,dc=example,dc=test\nobjectClass: groupOfNames\ncn: staff\nmember: uid=jo,ou=people,dc=example,dc=test\n")
		found := server.Search(t, "-b", connectors.SlapdBase, "(uid=jo)", "memberOf", "entryUUID")
		if !strings.Contains(found, "memberOf: cn=staff,dc=example,dc=test") || !strings.Contains(found, "entryUUID: ") {
			t.Error(found)
		}
	})
	t.Run("Samba", func(t *testing.T) {
		server := connectors.StartSamba(t, authority, "dn: ou=people,"+connectors.SambaBase+"\nobjectClass: organizationalUnit\n")
		server.NewUser(t, "jo", "Changeme2!", "--mail-address=jo@example.test", "--userou=ou=people")
		server.Add(t, "dn: cn=staff,"+connectors.SambaBase+"\nobjectClass: group\nsAMAccountName: staff\nmember: cn=jo,ou=people,"+connectors.SambaBase+"\n")
		found := server.Search(t, "-b", connectors.SambaBase, "(memberOf:1.2.840.113556.1.4.1941:=cn=staff,"+connectors.SambaBase+")", "mail", "objectGUID")
		if !strings.Contains(found, "mail: jo@example.test") || !strings.Contains(found, "objectGUID:: ") {
			t.Error(found)
		}
	})
}
