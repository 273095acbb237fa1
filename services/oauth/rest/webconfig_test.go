package rest_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/oauth/oauthtest"
)

// webConfig is the path of the web config of a site's application, as the key of
// its administrator made it.
func webConfig(d *oauthtest.Deployment, s oauthtest.Site) string {
	d.Applications.SetCreatedBy(id.Ref{Tenant: s.Tenant, ID: s.Application}, s.Key)
	return "/applicationWebConfigs/" + d.WebConfigOf(s.Tenant, s.Application).String()
}

func TestWebConfig(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	path := webConfig(d, d.Site)
	names := map[string]string{
		strings.TrimPrefix(path, "/applicationWebConfigs/"): "<config>", d.LabelOf(d.Tenant, d.Application): "<label>",
	}
	answer := want(t, 200, d.Do(t, d.Site, "GET", path, nil))
	golden(t, "web-config", d, answer.Body, names)
	d.Clock.Move(time.Minute)
	changed := want(t, 200, d.Do(t, d.Site, "POST", path, `{"dnsLabel":"Quiet-Heron","login":{"enabled":false},"verifyEmail":{"enabled":true},
		"me":{"expand":{"groups":true,"apiKeys":"true"}},"mfa":{"required":true,"factorTypes":["Google-Authenticator"]},"signingApiKey":null}`))
	golden(t, "web-config-changed", d, changed.Body, names)
	if changed.Header.Get("Location") != string(oauthtest.Base)+path {
		t.Errorf("the location is %q", changed.Header.Get("Location"))
	}
	if again := want(t, 200, d.Do(t, d.Site, "GET", path, nil)); again.Body != changed.Body {
		t.Errorf("it reads %s", again.Body)
	}
	t.Run("the whole resource goes back and changes nothing", func(t *testing.T) {
		if again := want(t, 200, d.Do(t, d.Site, "POST", path, changed.Body)); again.Body != changed.Body {
			t.Errorf("it is now %s", again.Body)
		}
	})
	t.Run("the first one, too", func(t *testing.T) {
		want(t, 200, d.Do(t, d.Site, "POST", path, withMFA(answer.Body)))
		first, now := decode(t, answer), decode(t, d.Do(t, d.Site, "GET", path, nil))
		delete(first, "modifiedAt")
		delete(now, "modifiedAt")
		if !reflect.DeepEqual(first, now) {
			t.Errorf("it is now %v, want %v", now, first)
		}
	})
}

// withMFA adds the default of mfa, which is not shown, to a web config.
func withMFA(config string) string {
	return strings.TrimSuffix(config, "}") + `,"mfa":{"required":false,"factorTypes":["sms","google-authenticator"]}}`
}

// Each case changes a web config that nobody has changed. Where there is no
// code, want is the member afterwards; the others stay as they were.
func TestMembersOfAWebConfig(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	path := webConfig(d, d.Site)
	endUser := decode(t, want(t, 201, d.Do(t, d.Site, "POST", "/accounts/"+d.Account.String()+"/apiKeys", nil)))["href"].(string)
	disabled := decode(t, want(t, 201, d.Do(t, d.Site, "POST", "/accounts/"+d.Administrator.String()+"/apiKeys", nil)))["href"].(string)
	want(t, 200, d.Do(t, d.Site, "POST", disabled, `{"status":"disabled"}`))
	second := decode(t, want(t, 201, d.Do(t, d.Site, "POST", "/accounts/"+d.Administrator.String()+"/apiKeys", nil)))["href"].(string)
	foreign := oauthtest.Base.Path("apiKeys", d.NewSite(t).Key)
	other := d.NewSite(t)
	taken := d.LabelOf(other.Tenant, other.Application)
	shown := func(on ...string) string {
		all := map[string]bool{}
		for _, name := range []string{"apiKeys", "applications", "customData", "directory", "groupMemberships", "groups", "providerData",
			"tenant"} {
			all[name] = strings.Contains(strings.Join(on, " "), name)
		}
		text, err := json.Marshal(all)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	key := func(href string) string { return fmt.Sprintf(`{"href":%q}`, href) }
	both := `["sms","google-authenticator"]`

	type change struct {
		member, sent string
		code         int
		want         string
	}
	cases := []change{
		{"status", `"disabled"`, 0, `"DISABLED"`},
		{"status", `"Enabled"`, 0, `"ENABLED"`},
		{"status", `"OPEN"`, 2003, ""},
		{"status", `null`, 2000, ""},
		{"status", `""`, 2000, ""},
		{"status", `true`, 2004, ""},
		{"dnsLabel", `"brave-newt"`, 0, `"brave-newt"`},
		{"dnsLabel", `"NEWT"`, 0, `"newt"`},
		{"dnsLabel", `"a b"`, 2006, ""},
		{"dnsLabel", `null`, 2000, ""},
		{"dnsLabel", `""`, 2000, ""},
		{"dnsLabel", `7`, 2004, ""},
		{"dnsLabel", `"` + taken + `"`, 2001, ""},
		{"me", `{"enabled":false}`, 0, `{"enabled":false,"expand":` + shown() + `}`},
		{"me", `{"enabled":"false"}`, 0, `{"enabled":false,"expand":` + shown() + `}`},
		{"me", `{"expand":{"tenant":true}}`, 0, `{"enabled":true,"expand":` + shown("tenant") + `}`},
		{"me", `{"expand":{"tenant":"true","groups":false,"customData":true}}`, 0,
			`{"enabled":true,"expand":` + shown("tenant", "customData") + `}`},
		{"me", `{"expand":{}}`, 0, `{"enabled":true,"expand":` + shown() + `}`},
		{"me", `{}`, 0, `{"enabled":true,"expand":` + shown() + `}`},
		{"me", `null`, 2000, ""},
		{"me", `true`, 2004, ""},
		{"me", `{"enabled":null}`, 2000, ""},
		{"me", `{"enabled":"yes"}`, 2004, ""},
		{"me", `{"expand":null}`, 2000, ""},
		{"me", `{"expand":["groups"]}`, 2004, ""},
		{"me", `{"expand":{"groups":null}}`, 2000, ""},
		{"me", `{"expand":{"groups":1}}`, 2004, ""},
		{"me", `{"expand":{"passwords":true}}`, 2015, ""},
		{"me", `{"expand":{"Groups":true}}`, 2015, ""},
		{"me", `{"on":true}`, 2015, ""},
		{"mfa", `{"required":true}`, 0, `{"required":true,"factorTypes":` + both + `}`},
		{"mfa", `{"required":"true"}`, 0, `{"required":true,"factorTypes":` + both + `}`},
		{"mfa", `{"factorTypes":["SMS"]}`, 0, `{"required":false,"factorTypes":["sms"]}`},
		{"mfa", `{"factorTypes":["google-authenticator","sms","Sms"]}`, 0, `{"required":false,"factorTypes":["google-authenticator","sms"]}`},
		{"mfa", `{"factorTypes":[]}`, 2000, ""},
		{"mfa", `{"factorTypes":null}`, 2000, ""},
		{"mfa", `{"factorTypes":"sms"}`, 2004, ""},
		{"mfa", `{"factorTypes":[1]}`, 2004, ""},
		{"mfa", `{"factorTypes":["voice"]}`, 2003, ""},
		{"mfa", `{"factorTypes":[""]}`, 2000, ""},
		{"mfa", `{"required":null}`, 2000, ""},
		{"mfa", `null`, 2000, ""},
		{"mfa", `[]`, 2004, ""},
		{"mfa", `{"types":["sms"]}`, 2015, ""},
		{"signingApiKey", key(second), 0, key(second)},
		{"signingApiKey", key(second + "/"), 0, key(second)},
		{"signingApiKey", `{"href":"` + second + `","status":"ENABLED"}`, 0, key(second)},
		{"signingApiKey", `null`, 0, `null`},
		{"signingApiKey", key(disabled), 2014, ""},
		{"signingApiKey", key(endUser), 2014, ""},
		{"signingApiKey", key(foreign), 2014, ""},
		{"signingApiKey", key(oauthtest.Base.Path("apiKeys", "NOBODY")), 2014, ""},
		{"signingApiKey", key(oauthtest.Base.Path("apiKeys", "..", "apiKeys", d.Key)), 2014, ""},
		{"signingApiKey", key(oauthtest.Base.Path("apiKeys", "%00")), 2014, ""},
		{"signingApiKey", key(oauthtest.Base.Path("apiKeys", "")), 2014, ""},
		{"signingApiKey", key(oauthtest.Base.To("accounts", d.Administrator)), 2014, ""},
		{"signingApiKey", key("https://elsewhere.example/v1/apiKeys/" + d.Key), 2014, ""},
		{"signingApiKey", `{}`, 2004, ""},
		{"signingApiKey", `"` + second + `"`, 2004, ""},
		{"domainName", `"evil.example"`, 0, `"` + d.LabelOf(d.Tenant, d.Application) + `.apps.localhost"`},
		{"application", key(oauthtest.Base.To("applications", other.Application)), 0, key(oauthtest.Base.To("applications", d.Application))},
		{"tenant", `null`, 0, key(oauthtest.Base.To("tenants", d.Tenant))},
		{"nonsense", `1`, 2015, ""},
		{"idSite", `{"enabled":true}`, 2015, ""},
	}
	for _, switches := range []string{"oauth2", "register", "login", "verifyEmail", "forgotPassword", "changePassword"} {
		fallback := "null"
		cases = append(cases,
			change{switches, `{"enabled":false}`, 0, `{"enabled":false}`},
			change{switches, `{"enabled":true}`, 0, `{"enabled":true}`},
			change{switches, `{"enabled":"false"}`, 0, `{"enabled":false}`},
			change{switches, `{"enabled":"no"}`, 2004, ""},
			change{switches, `{"enabled":0}`, 2004, ""},
			change{switches, `{"enabled":true,"uri":"/x"}`, 2015, ""},
			change{switches, `{"Enabled":true}`, 2015, ""},
			change{switches, `false`, 2004, ""},
			change{switches, `null`, 2000, ""})
		if switches == "oauth2" || switches == "register" || switches == "login" {
			fallback = "true"
			cases = append(cases, change{switches, `{"enabled":null}`, 2000, ""})
		} else {
			cases = append(cases, change{switches, `{"enabled":null}`, 0, `{"enabled":null}`})
		}
		cases = append(cases, change{switches, `{}`, 0, `{"enabled":` + fallback + `}`})
	}
	before := decode(t, d.Do(t, d.Site, "GET", path, nil))
	original := withMFA(d.Do(t, d.Site, "GET", path, nil).Body)
	for _, c := range cases {
		t.Run(c.member+" "+c.sent, func(t *testing.T) {
			body := fmt.Sprintf(`{%q:%s}`, c.member, c.sent)
			if c.code != 0 {
				body = fmt.Sprintf(`{"status":"DISABLED","login":{"enabled":false},"dnsLabel":"not-kept",%q:%s}`, c.member, c.sent)
				if c.member == "dnsLabel" || c.member == "status" || c.member == "login" {
					body = fmt.Sprintf(`{"register":{"enabled":false},%q:%s}`, c.member, c.sent)
				}
			}
			answer := d.Do(t, d.Site, "POST", path, body)
			after := decode(t, d.Do(t, d.Site, "GET", path, nil))
			delete(after, "modifiedAt")
			delete(before, "modifiedAt")
			if c.code != 0 {
				status := 400
				if c.code == 2001 {
					status = 409
				}
				refused(t, status, c.code, answer)
				if !reflect.DeepEqual(before, after) {
					t.Errorf("a refused body left %v", after)
				}
				return
			}
			want(t, 200, answer)
			var member any
			if err := json.Unmarshal([]byte(c.want), &member); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(after[c.member], member) {
				t.Errorf("%s is %v, want %v", c.member, after[c.member], member)
			}
			for name := range before {
				if name != c.member && name != "domainName" && !reflect.DeepEqual(before[name], after[name]) {
					t.Errorf("%s became %v", name, after[name])
				}
			}
			want(t, 200, d.Do(t, d.Site, "POST", path, original))
		})
	}
	t.Run("a body that is no object", func(t *testing.T) {
		for _, body := range []string{``, `null`, `[]`, `{"login":`, `1`} {
			refused(t, 400, 2006, d.Do(t, d.Site, "POST", path, body))
		}
	})
}

func TestTheSigningKeyOfAWebConfig(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	path := webConfig(d, d.Site)
	signer := func() any { return decode(t, want(t, 200, d.Do(t, d.Site, "GET", path, nil)))["signingApiKey"] }
	administrators := "/accounts/" + d.Administrator.String() + "/apiKeys"
	first := decode(t, want(t, 201, d.Do(t, d.Site, "POST", administrators, nil)))["href"].(string)
	body := fmt.Sprintf(`{"signingApiKey":{"href":%q}}`, first)
	for what, change := range map[string]func(status string){
		"account":   func(status string) { d.SetStatus(d.Tenant, d.Administrator, status) },
		"directory": func(status string) { d.SetStatus(d.Tenant, d.Administrators, status) },
	} {
		t.Run("the key of a disabled "+what, func(t *testing.T) {
			change(directoryapi.Disabled)
			refused(t, 400, 2014, d.Do(t, d.Site, "POST", path, body))
			change(directoryapi.Enabled)
		})
	}
	want(t, 200, d.Do(t, d.Site, "POST", path, body))
	t.Run("a disabled key stays", func(t *testing.T) {
		want(t, 200, d.Do(t, d.Site, "POST", first, `{"status":"DISABLED"}`))
		if got := signer(); !reflect.DeepEqual(got, object{"href": first}) {
			t.Errorf("the key is %v", got)
		}
		want(t, 200, d.Do(t, d.Site, "POST", path, `{"login":{"enabled":false}}`))
		want(t, 200, d.Do(t, d.Site, "POST", path, body)) // as clients do that send back what they read
	})
	t.Run("a deleted key is shown no more", func(t *testing.T) {
		want(t, 204, d.Do(t, d.Site, "DELETE", first, nil))
		if got := signer(); got != nil {
			t.Errorf("the key is %v", got)
		}
	})
	t.Run("nor is the key of the creation", func(t *testing.T) {
		other := d.NewSite(t)
		path := webConfig(d, other)
		want(t, 204, d.Do(t, other, "DELETE", "/apiKeys/"+other.Key, nil))
		if got := decode(t, want(t, 200, d.Do(t, other, "GET", path, nil)))["signingApiKey"]; got != nil {
			t.Errorf("the key is %v", got)
		}
	})
	t.Run("an application of the sign-up has none of its own", func(t *testing.T) {
		other := d.NewSite(t)
		if got := decode(t, want(t, 200, d.Do(t, other, "GET", "/applicationWebConfigs/"+d.WebConfigOf(other.Tenant,
			other.Application).String(), nil)))["signingApiKey"]; got != nil {
			t.Errorf("the key is %v", got)
		}
	})
}

func TestTheWebConfigOfTheConsole(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	console := d.Site
	console.Application = d.Console
	path := webConfig(d, console)
	config := decode(t, want(t, 200, d.Do(t, d.Site, "GET", path, nil)))
	if config["status"] != "DISABLED" || config["dnsLabel"] != nil || config["domainName"] != nil {
		t.Errorf("it is %v", config)
	}
	refused(t, 400, 400, d.Do(t, d.Site, "POST", path, `{"status":"ENABLED"}`))
	refused(t, 400, 400, d.Do(t, d.Site, "POST", path, `{"login":{"enabled":false},"status":"enabled"}`))
	refused(t, 400, 400, d.Do(t, d.Site, "POST", path, `{"dnsLabel":"console"}`))
	whole := want(t, 200, d.Do(t, d.Site, "GET", path, nil)).Body
	want(t, 200, d.Do(t, d.Site, "POST", path, whole))
	want(t, 200, d.Do(t, d.Site, "POST", path, `{"status":"disabled","dnsLabel":null}`))
	refused(t, 400, 400, d.Do(t, d.Site, "POST", path, `{"status":"ENABLED"}`))
	if again := decode(t, d.Do(t, d.Site, "GET", path, nil)); again["status"] != "DISABLED" || again["dnsLabel"] != nil {
		t.Errorf("it is now %v", again)
	}
}

func TestAWebConfigIsItsTenants(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	path, stranger := webConfig(d, d.Site), d.NewSite(t)
	before := want(t, 200, d.Do(t, d.Site, "GET", path, nil)).Body
	refused(t, 404, 404, d.Do(t, stranger, "GET", path, nil))
	refused(t, 404, 404, d.Do(t, stranger, "POST", path, `{"status":"DISABLED"}`))
	refused(t, 404, 404, d.Do(t, stranger, "POST", path, `{"dnsLabel":"mine"}`))
	refused(t, 404, 404, d.Do(t, d.Site, "GET", "/applicationWebConfigs/"+d.Application.String(), nil)) // no id of a web config
	refused(t, 404, 404, d.Do(t, d.Site, "GET", "/applicationWebConfigs/x", nil))
	if after := want(t, 200, d.Do(t, d.Site, "GET", path, nil)).Body; after != before {
		t.Errorf("it is now %s", after)
	}
	d.Delete(d.Tenant, d.Application)
	refused(t, 404, 404, d.Do(t, d.Site, "GET", path, nil))
	refused(t, 404, 404, d.Do(t, d.Site, "POST", path, `{"status":"DISABLED"}`))
}
