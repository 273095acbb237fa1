package rest_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/application/applicationtest"
)

var rewrite = flag.Bool("update", false, "rewrite the golden answers under testdata")

// Every representation, byte by byte but for its ids.
func TestAnswers(t *testing.T) {
	t.Parallel()
	c := open(t)
	shop := text(c.create(t, "/applications?createDirectory=true", object{
		"name": "Shop", "description": "Sells things", "status": "enabled",
		"authorizedCallbackUris": []string{"https://app.localhost/cb"}, "authorizedOriginUris": []string{"https://calm-otter.apps.localhost"},
	})["href"])
	second := c.directory(t, "Second")
	c.mapping(t, shop, second, nil)
	bare := c.application(t, "Bare")
	mapping := linked(t, c.get(t, shop), "defaultAccountStoreMapping")
	directory := linked(t, c.get(t, mapping), "accountStore")
	account := object{"email": "jo@example.test", "password": applicationtest.Password, "givenName": "Jo", "surname": "Doe"}
	value := base64.StdEncoding.EncodeToString([]byte("jo@example.test:" + applicationtest.Password))
	tenant := applicationtest.Base.To("tenants", c.tenant)

	for _, scenario := range []struct {
		name, method, path string
		body               any
		status             int
	}{
		{"application", "GET", shop, nil, 200},
		{"application-without-stores", "GET", bare, nil, 200},
		{"application-updated", "POST", bare, object{"description": nil, "status": "disabled"}, 200},
		{"application-created", "POST", "/applications?createDirectory=Customers", object{"name": "Created"}, 201},
		{"applications", "GET", tenant + "/applications?name=S*&offset=0&limit=1", nil, 200},
		{"account-created", "POST", shop + "/accounts", account, 201},
		{"accounts", "GET", shop + "/accounts?q=example", nil, 200},
		{"login-attempt", "POST", shop + "/loginAttempts", object{"type": "basic", "value": value}, 200},
		{"login-attempt-refused", "POST", shop + "/loginAttempts", object{"type": "basic", "value": "am86"}, 400},
		{"mapping", "GET", mapping, nil, 200},
		{"mapping-created", "POST", "/accountStoreMappings", object{"application": link(bare), "accountStore": link(second), "listIndex": "3", "isDefaultAccountStore": "true"}, 201},
		{"mappings", "GET", shop + "/accountStoreMappings?orderBy=listIndex%20desc", nil, 200},
		{"directory-applications", "GET", directory + "/applications", nil, 200},
		{"directory-mappings", "GET", directory + "/applicationMappings", nil, 200},
	} {
		t.Run(scenario.name, func(t *testing.T) {
			c.Clock.Tick()
			golden(t, scenario.name, c.want(t, scenario.status, scenario.method, scenario.path, scenario.body).body)
		})
	}
}

// golden compares an answer with the file of that name.
func golden(t *testing.T, name string, answer []byte) {
	t.Helper()
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, withoutIDs(answer), "", "  "); err != nil {
		t.Fatal(err)
	}
	pretty.WriteByte('\n')
	file := filepath.Join("testdata", name+".json")
	if *rewrite {
		if err := os.WriteFile(file, pretty.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(pretty.Bytes(), want) {
		t.Errorf("the answer is not that of %s (rewrite it with -update):\n%s", file, pretty.Bytes())
	}
}

var (
	label   = regexp.MustCompile(`//[a-z]+-[a-z]+\.` + regexp.QuoteMeta(applicationtest.Suffix))
	segment = regexp.MustCompile(`/[0-9A-Za-z]{22}\b`)
)

// withoutIDs names the ids of an answer in the order of their appearance, and
// takes one pair of words for each of those that name a Client API.
func withoutIDs(answer []byte) []byte {
	answer = label.ReplaceAll(answer, []byte("//calm-otter."+applicationtest.Suffix))
	names := map[string]string{}
	return segment.ReplaceAllFunc(answer, func(found []byte) []byte {
		if _, err := id.Parse(string(found[1:])); err != nil {
			return found // a word of 22 letters
		}
		name, known := names[string(found)]
		if !known {
			name = fmt.Sprintf("/ID%d", len(names)+1)
			names[string(found)] = name
		}
		return []byte(name)
	})
}
