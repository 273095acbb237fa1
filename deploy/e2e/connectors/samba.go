package connectors

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/doorward/doorward/deploy/e2e/harness"
)

// Names of the Active Directory domain. It refuses simple binds on connections
// that are not encrypted, as a domain with its defaults does.
const (
	SambaBase     = "dc=doorward,dc=test"
	SambaAdmin    = "administrator@doorward.test"
	SambaPassword = "Changeme1!"
)

// Samba is an Active Directory domain controller for one test.
type Samba struct {
	*harness.Daemon
	directory

	// Dir holds its configuration (smb.conf), its state and its log.
	Dir string
}

// The controller's LDAP ports are fixed (389, 636, 3268 and 3269), so it has an
// address of loopback to itself, and runs no other service.
const smbConf = `[global]
	realm = DOORWARD.TEST
	workgroup = DOORWARD
	netbios name = DC1
	server role = active directory domain controller
	server services = ldap
	interfaces = %[2]s/8
	bind interfaces only = yes
	state directory = %[1]s/state
	cache directory = %[1]s/cache
	lock directory = %[1]s/lock
	private dir = %[1]s/private
	binddns dir = %[1]s/bind-dns
	pid directory = %[1]s/pid
	ncalrpc dir = %[1]s/ncalrpc
	tls enabled = yes
	tls cafile = %[3]s
	tls certfile = %[4]s
	tls keyfile = %[5]s
	load printers = no
	printcap name = /dev/null
[sysvol]
	path = %[1]s/state/sysvol
[netlogon]
	path = %[1]s/state/sysvol/doorward.test/scripts
`

// StartSamba makes a new domain, which takes some ten seconds, and runs its
// controller. Add, Modify and Delete change it; Tool is samba-tool on its database.
func StartSamba(t testing.TB, authority *harness.Authority, ldif string) *Samba {
	t.Helper()
	program, err := harness.Program("samba", "connectors")
	must(t, err)
	dir, host := t.TempDir(), loopback(t, 389, 636, 3268, 3269)
	for _, name := range []string{"state", "cache", "lock", "private", "bind-dns", "pid", "ncalrpc"} {
		must(t, os.Mkdir(filepath.Join(dir, name), 0o755))
	}
	cert, key, err := authority.Issue(dir, "localhost", "dc1.doorward.test", host)
	must(t, err)
	s := &Samba{Dir: dir, directory: directory{
		Host: host, Port: 389, TLSPort: 636, CAFile: authority.CAFile, admin: SambaAdmin, password: SambaPassword,
	}}
	must(t, os.WriteFile(s.conf(), fmt.Appendf(nil, smbConf, dir, host, authority.CAFile, cert, key), 0o600))
	s.Tool(t, "domain", "provision", "--realm=DOORWARD.TEST", "--domain=DOORWARD", "--server-role=dc", "--dns-backend=NONE",
		"--host-name=dc1", "--host-ip="+host, "--adminpass="+SambaPassword, "--use-rfc2307")
	s.Daemon = harness.NewDaemon("samba", filepath.Join(dir, "samba.log"), s.answers, program,
		"-i", "-M", "single", "--debug-stdout", "-d", "1", "-s", s.conf())
	serve(t, s.Daemon)
	if ldif != "" {
		s.Add(t, ldif)
	}
	return s
}

// Tool runs samba-tool on the controller's own database.
func (s *Samba) Tool(t testing.TB, args ...string) string {
	t.Helper()
	out, err := command(t.Context(), nil, "", "samba-tool", append(args, "--configfile="+s.conf())...)
	must(t, err)
	return out
}

// NewUser makes an enabled user with a password. Fields are options of samba-tool's
// user create, such as --mail-address=jo@example.test.
func (s *Samba) NewUser(t testing.TB, name, password string, fields ...string) {
	t.Helper()
	s.Tool(t, append([]string{"user", "create", name, password}, fields...)...)
}

func (s *Samba) conf() string { return filepath.Join(s.Dir, "smb.conf") }

// loopback finds an address of this machine on which all of the ports are free.
func loopback(t testing.TB, ports ...int) string {
	t.Helper()
	var last error
	for i := 1; i < 255; i++ {
		host := fmt.Sprintf("127.83.0.%d", i)
		if last = free(t.Context(), host, ports...); last == nil {
			return host
		}
		if strings.Contains(last.Error(), "permission denied") {
			t.Fatalf("%v: the domain controller listens on ports below 1024; run as root, or once: "+
				"sysctl -w net.ipv4.ip_unprivileged_port_start=389", last)
		}
	}
	t.Fatalf("no loopback address with free ports: %v", last)
	return ""
}

func free(ctx context.Context, host string, ports ...int) error {
	for _, port := range ports {
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", fmt.Sprintf("%s:%d", host, port))
		if err != nil {
			return err
		}
		if err := listener.Close(); err != nil {
			return err
		}
	}
	return nil
}
