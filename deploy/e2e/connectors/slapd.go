package connectors

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/doorward/doorward/deploy/e2e/harness"
)

// Names of what every slapd of these tests has. Its LDIF begins below SlapdBase,
// whose entry is there; SlapdAdmin may do everything, without limits of size.
const (
	SlapdBase     = "dc=example,dc=test"
	SlapdAdmin    = "cn=admin," + SlapdBase
	SlapdPassword = "admin-Secret1!"
)

// Slapd is an OpenLDAP server for one test.
type Slapd struct {
	*harness.Daemon
	directory

	// Dir holds its configuration (slapd.conf), its database and its log.
	Dir string
}

// directory is an LDAP server with an administrator.
type directory struct {
	// Host, Port (plain and StartTLS) and TLSPort (LDAPS) are on loopback.
	Host          string
	Port, TLSPort int

	// CAFile verifies its certificate.
	CAFile string

	admin, password string
}

// The overlays keep memberOf, follow renamed members, and know expired and locked
// passwords where an entry has a pwdPolicySubentry.
const slapdConf = `include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/inetorgperson.schema
include /etc/ldap/schema/nis.schema
include /etc/ldap/schema/dyngroup.schema
modulepath /usr/lib/ldap
moduleload back_mdb
moduleload memberof
moduleload refint
moduleload ppolicy
pidfile %[1]s/slapd.pid
TLSCACertificateFile %[2]s
TLSCertificateFile %[3]s
TLSCertificateKeyFile %[4]s
sizelimit 500
database mdb
suffix "%[5]s"
rootdn "%[6]s"
rootpw %[7]s
directory %[1]s/db
maxsize 4294967296
dbnosync
index objectClass,uid,cn,mail,member,uniqueMember,entryUUID,modifyTimestamp eq
limits dn.exact="%[6]s" size=unlimited time=unlimited
access to attrs=userPassword by anonymous auth by self write by * none
access to * by users read by anonymous auth
overlay memberof
memberof-dangling ignore
memberof-refint true
overlay refint
refint_attributes member uniqueMember manager
overlay ppolicy
ppolicy_use_lockout
`

const slapdRoot = `dn: ` + SlapdBase + `
objectClass: dcObject
objectClass: organization
dc: example
o: Example

`

// StartSlapd runs slapd with StartTLS and LDAPS, memberOf, paged results, the
// policy overlay and a limit of 500 entries for searches that are not paged by
// the administrator. The LDIF is loaded before it starts, with a million entries
// too; memberOf is kept for what comes later, by Add and Modify.
func StartSlapd(t testing.TB, authority *harness.Authority, ldif string) *Slapd {
	t.Helper()
	program, err := harness.Program("slapd", "connectors")
	must(t, err)
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "db"), 0o700))
	cert, key, err := authority.Issue(dir, "localhost", "127.0.0.1")
	must(t, err)
	conf := filepath.Join(dir, "slapd.conf")
	text := fmt.Sprintf(slapdConf, dir, authority.CAFile, cert, key, SlapdBase, SlapdAdmin, SlapdPassword)
	must(t, os.WriteFile(conf, []byte(text), 0o600))
	_, err = command(t.Context(), nil, slapdRoot+ldif, "slapadd", "-q", "-f", conf)
	must(t, err)
	s := &Slapd{Dir: dir, directory: directory{
		Host: "127.0.0.1", Port: harness.FreePort(), TLSPort: harness.FreePort(), CAFile: authority.CAFile,
		admin: SlapdAdmin, password: SlapdPassword,
	}}
	// With a debug level, even none, it stays in the foreground.
	s.Daemon = harness.NewDaemon("slapd", filepath.Join(dir, "slapd.log"), s.answers, program, "-d", "0", "-f", conf,
		"-h", fmt.Sprintf("ldap://%s:%d ldaps://%s:%d", s.Host, s.Port, s.Host, s.TLSPort))
	serve(t, s.Daemon)
	return s
}

// URL is the address for plain connections and StartTLS.
func (d directory) URL() string { return "ldap://" + net.JoinHostPort(d.Host, strconv.Itoa(d.Port)) }

// Add loads entries; memberOf follows.
func (d directory) Add(t testing.TB, ldif string) {
	t.Helper()
	d.run(t, ldif, "ldapadd")
}

// Modify makes changes, in LDIF with changetype.
func (d directory) Modify(t testing.TB, ldif string) {
	t.Helper()
	d.run(t, ldif, "ldapmodify")
}

// Delete removes entries by name.
func (d directory) Delete(t testing.TB, names ...string) {
	t.Helper()
	d.run(t, "", "ldapdelete", names...)
}

// Search runs ldapsearch with these arguments and returns what it prints.
func (d directory) Search(t testing.TB, args ...string) string {
	t.Helper()
	found, err := d.tool(t.Context(), "", "ldapsearch", append([]string{"-LLL", "-o", "ldif-wrap=no"}, args...)...)
	must(t, err)
	return found
}

func (d directory) run(t testing.TB, input, program string, args ...string) {
	t.Helper()
	_, err := d.tool(t.Context(), input, program, args...)
	must(t, err)
}

// tool runs one of Debian's LDAP programs as the administrator, over StartTLS.
func (d directory) tool(ctx context.Context, input, program string, args ...string) (string, error) {
	options := []string{"-x", "-ZZ", "-H", d.URL(), "-D", d.admin, "-w", d.password}
	return command(ctx, []string{"LDAPTLS_CACERT=" + d.CAFile, "LDAPCONF=/dev/null"}, input, program, append(options, args...)...)
}

// answers reads the root of the server.
func (d directory) answers(ctx context.Context) error {
	_, err := d.tool(ctx, "", "ldapsearch", "-LLL", "-s", "base", "-b", "", "namingContexts")
	return err
}
