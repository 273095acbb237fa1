package backends

import (
	"strings"
	"testing"

	"github.com/doorward/doorward/pkg/redisclient"
	"github.com/doorward/doorward/pkg/secure"
)

func TestRedisWithTLSAndAUser(t *testing.T) {
	t.Parallel()
	s := NewServers(t)
	address := "rediss://" + s.User() + "localhost:" + s.StartRedis("redis").Port
	client := s.Redis(address)
	defer client.Close()
	s.Arrives(client)
	if err := client.Set(t.Context(), "key", "value", 0).Err(); err == nil || !strings.Contains(err.Error(), "NOPERM") {
		t.Errorf("the user may do more than the product needs: %v", err)
	}
	for what, with := range map[string]struct{ address, says string }{
		"a wrong password": {strings.Replace(address, Password, "wrong", 1), "WRONGPASS"},
		"no user":          {strings.Replace(address, s.User(), "", 1), "NOAUTH"},
		"no TLS":           {strings.Replace(address, "rediss", "redis", 1), "EOF"},
	} {
		if err := s.answers(t.Context(), with.address); err == nil || !strings.Contains(err.Error(), with.says) {
			t.Errorf("%s: %v", what, err)
		}
	}
	untrusted, err := redisclient.Open(redisclient.Config{URL: secure.Secret(address)})
	s.Must(err)
	defer untrusted.Close()
	if err := untrusted.Ping(t.Context()).Err(); err == nil || !strings.Contains(err.Error(), "unknown authority") {
		t.Errorf("an authority that is not trusted: %v", err)
	}
}
