package app

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

var mailedToken = regexp.MustCompile(`[?&]sptoken=([0-9A-Za-z]+)`)

// The link of a verification or of an invitation names its tenant by an opaque token alone, and the path of a Client
// API by a label.
func operatorsLookMailedLinksUp(p *product) {
	application, tenant, before := p.verifying(), p.tenantPath(), len(p.mails(0))
	account, _ := p.send("POST", application+"/accounts", `{"email":"link@example.test","password":"Changeme1!"}`, 201)
	if href(account) == "" {
		p.Fatalf("the account is %v", account)
	}
	p.send("POST", tenant+"/invitations", `{"email":"invited@example.test"}`, 201)
	names := []url.Values{}
	for _, mail := range p.mails(before + 2) {
		mail := mail.(map[string]any)
		token := mailedToken.FindStringSubmatch(mail["text"].(string))
		if to := fmt.Sprint(mail["to"]); to == "[link@example.test]" || to == "[invited@example.test]" {
			names = append(names, url.Values{"id": {token[1]}})
		}
	}
	config, _ := p.send("GET", application+"?expand=webConfig", "", http.StatusOK)
	label, _, _ := strings.Cut(config["webConfig"].(map[string]any)["domainName"].(string), ".")
	for _, query := range append(names, url.Values{"host": {label}}) {
		var found struct{ Tenant string }
		p.operator("GET", "/lookup?"+query.Encode(), "", http.StatusOK, &found)
		if !strings.HasSuffix(tenant, "/"+found.Tenant) {
			p.Errorf("the look-up by %s finds the tenant %q, want that of %s", query.Encode(), found.Tenant, tenant)
		}
	}
	if len(names) != 2 {
		p.Errorf("the mails have %d tokens, want two", len(names))
	}
}
