package redisclient

import (
	"slices"
	"strings"
	"testing"

	"github.com/doorward/doorward/pkg/secure"
)

func TestTheFormsOfTheAddress(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]struct {
		nodes    []string
		master   string
		cluster  bool
		secured  bool
		user     string
		password string
		database int
	}{
		"redis://cache":                     {nodes: []string{"cache:6379"}},
		"redis://:pass%2Fword@cache:7000/2": {nodes: []string{"cache:7000"}, password: "pass/word", database: 2},
		"rediss://doorward:word@cache":      {nodes: []string{"cache:6379"}, secured: true, user: "doorward", password: "word"},
		"redis://[::1]:7000":                {nodes: []string{"[::1]:7000"}},
		"redis+sentinel://a,b:7000/main":    {nodes: []string{"a:26379", "b:7000"}, master: "main"},
		"rediss+sentinel://u:p@a,b/main/1": {
			nodes: []string{"a:26379", "b:26379"}, master: "main", secured: true, user: "u", password: "p", database: 1,
		},
		"redis+cluster://a":                             {nodes: []string{"a:6379"}, cluster: true},
		"rediss+cluster://:p@a:1,b:2":                   {nodes: []string{"a:1", "b:2"}, cluster: true, secured: true, password: "p"},
		"redis://a:1?addr=b:2&addr=c:3":                 {nodes: []string{"a:1", "b:2", "c:3"}, cluster: true},
		"redis://a:1?addr=b:2&master_name=main":         {nodes: []string{"a:1", "b:2"}, master: "main"},
		"redis+sentinel://a/m?sentinel_password=secret": {nodes: []string{"a:26379"}, master: "m"},
	} {
		o, err := Config{URL: secure.Secret(address)}.options()
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		if !slices.Equal(o.Addrs, want.nodes) || o.MasterName != want.master || o.IsClusterMode != want.cluster ||
			(o.TLSConfig != nil) != want.secured || o.Username != want.user || o.Password != want.password || o.DB != want.database {
			t.Errorf("%s is read as %q master %q cluster %t TLS %t user %q password %q database %d", address,
				o.Addrs, o.MasterName, o.IsClusterMode, o.TLSConfig != nil, o.Username, o.Password, o.DB)
		}
	}
}

func TestWrongAddressesAreRefusedWithoutTheirPassword(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"cache:6379":                            "forms",
		"http://:Changeme1@cache":               "forms",
		"redis+other://:Changeme1@cache":        "forms",
		"redis://:Changeme1@":                   "forms",
		"redis://:Changeme1@cache/first":        "forms",
		"redis://:Changeme1@a,b":                "several hosts",
		"redis+sentinel://:Changeme1@a,b":       "Sentinel group",
		"redis+cluster://:Changeme1@a,b/3":      "forms",
		"redis://:Changeme1@cache?skip_verify=": "skip_verify",
		"redis://:Changeme1@cache:port":         "forms",
	} {
		_, err := Open(Config{URL: secure.Secret(address)})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "REDIS_URL") ||
			strings.Contains(err.Error(), "Changeme1") {
			t.Errorf("%s: %v", address, err)
		}
	}
	if _, err := Open(Config{URL: "rediss://cache", CA: "none"}); err == nil || !strings.Contains(err.Error(), "REDIS_CA") {
		t.Errorf("authorities that are no PEM: %v", err)
	}
}
