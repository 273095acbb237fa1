package backends

import (
	"net/url"
	"strings"
	"testing"

	"github.com/doorward/doorward/deploy/e2e/harness"
)

func TestTheCertificateOfPostgreSQLIsChecked(t *testing.T) {
	t.Parallel()
	s := NewServers(t)
	right := s.StartPostgres("postgres").URL(Database)
	if _, err := s.Open(right, "trial"); err != nil {
		t.Error(err)
	}
	other, err := harness.NewAuthority(t.TempDir())
	s.Must(err)
	s.Refused(strings.Replace(right, url.QueryEscape(s.Authority.CAFile), url.QueryEscape(other.CAFile), 1), "not trusted", "sslrootcert")
	s.Refused(strings.Replace(right, "&sslrootcert="+url.QueryEscape(s.Authority.CAFile), "", 1), "not trusted", "SSL_CERT_DIR")
	s.Refused(strings.Replace(right, "localhost", "127.0.0.1", 1), "other names", "127.0.0.1")
	s.Refused(strings.Replace(right, url.QueryEscape(s.Authority.CAFile), "/none.pem", 1), "/none.pem")
	s.Refused(strings.Replace(right, "verify-full", "disable", 1), "no encryption")
	s.Refused(strings.Replace(right, Password, "wrong", 1), "password authentication failed")
}
