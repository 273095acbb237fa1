package rest_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// unseen are the errors that the packages behind the service name and that no
// request to it meets, each with the request that does.
var unseen = map[string]string{
	"AccountDisabled": "logins", "AccountLocked": "logins", "AccountUnverified": "logins", "DirectoryDisabled": "logins",
	"GroupDisabled": "logins", "AfterMaximum": "durations of OpenID providers",
	"NoSuchAccount": "logins", "WrongPassword": "logins", "Unavailable": "logins when too many run",
	"TokenAccountDisabled": "tokens", "TokenAccountUnreachable": "tokens", "TokenStoreDisabled": "tokens",
	"NoSuchResource":       "resets and verification mails of applications",
	"VerificationDisabled": "verification mails of applications",
	"Forbidden":            "a request without a caller", "TooLarge": "a body of more than the server reads",
	"AccountStoreDisabled": "applications, as creators of accounts", "Unauthorized": "keys of agents, at the gateway",
	"TenantSuspended":  "suspended tenants, at the gateway and the other doors",
	"AgentUnreachable": "delegated logins", "ServerUnreachable": "delegated logins", "AgentSlow": "delegated logins",
	"ServerSlow":    "delegated logins",
	"AgentFailures": "nobody: it is the list of those of delegated logins", "AgentAnswer": "delegated logins",
	"ServerAnswer": "delegated logins", "ReferralFailed": "delegated logins",
	"OtherInvitee": "answers to invitations", "TooMany": "sign-ups and invitations",
	"NotSAML": "logins", "SAMLMalformed": "logins", "ProviderIncomplete": "logins at a provider that answers",
	"Internal": "nobody, by a request alone",
}

// TestEveryErrorOfTheService provokes each error that the service names and
// compares the whole answer.
func TestEveryErrorOfTheService(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	estate := b.estate()
	tenant, staff, jo := estate["tenants"], estate["directories"], estate["accounts"]
	strength := passwordPolicy(staff) + "/strength"
	b.Post(strength, `{"preventReuse":2}`).Want(200)
	strict := b.directory("Strict")
	b.Post(creationPolicy(strict),
		`{"emailDomainWhitelist":["*example.test"],"emailDomainBlacklist":["bad.example.test"]}`).Want(200)
	mirror := b.mirror("Copies", social("github", ``))
	professional := b.mirror("Professionals", social("linkedin", ``))
	filled := b.directory("Filled")
	copied := b.member(filled, "copied@example.test")
	b.mirrored(filled)
	b.Post(creationPolicy(filled), `{"emailDomainWhitelist":["corp.test"]}`).Want(200)
	agent := b.agent("Corp", ldapProvider(``))
	b.complete(agent, 0, 1)

	ann := b.Get(jo + "/linkedAccounts").Want(200).Items()[0]["href"].(string)
	besideAnn := b.member(b.Get(ann).Want(200).Href("directory"), "beside@example.test")
	popular := b.member(strict, "popular@example.test")
	var fan string
	for i := range 11 {
		fan = b.member(b.directory(fmt.Sprint("Fans ", i)), "fan@example.test")
		if i < 10 {
			b.Post("/v1/accountLinks", ends(popular, fan)).Want(201)
		}
	}
	met := map[string]bool{}
	for _, c := range []struct {
		err          string
		status, code int
		method, path string
		body         string
	}{
		{"BadRequest", 400, 400, "DELETE", base.To("directories", b.signedUp.Directory.ID), ""},
		{"NotFound", 404, 404, "GET", b.unknown("accounts"), ""},
		{"NotFound", 404, 404, "GET", jo + "/foobar", ""},
		{"MethodNotAllowed", 405, 1100, "DELETE", estate["schemas"], ""},
		{"Required", 400, 2000, "POST", staff + "/accounts", `{"password":"Changeme1!"}`},
		{"Exists", 409, 2001, "POST", staff + "/accounts", `{"email":"JO@example.test","password":"Changeme1!"}`},
		{
			"Invalid", 400, 2002, "POST", estate["userInfoMappingRules"],
			`{"items":[{"name":"x","accountAttributes":["status"]}]}`,
		},
		{"Unsupported", 400, 2003, "POST", jo, `{"status":"PAUSED"}`},
		{"WrongType", 400, 2004, "POST", staff, `{"name":7}`},
		{"Encoding", 400, 2005, "POST", staff, "{\"name\":\"\xff\"}"},
		{"Format", 400, 2006, "POST", jo, `{"email":"nobody"}`},
		{"TooShort", 400, 2007, "POST", jo, `{"password":"Short1!"}`},
		{"TooLong", 400, 2008, "POST", staff, `{"name":"` + strings.Repeat("é", 256) + `"}`},
		{"BelowMinimum", 400, 2009, "POST", passwordPolicy(staff), `{"resetTokenTtl":0}`},
		{"AboveMaximum", 400, 2010, "POST", passwordPolicy(staff), `{"resetTokenTtl":169}`},
		{
			"Reference", 400, 2014, "POST", "/v1/groupMemberships",
			fmt.Sprintf(`{"account":{"href":%q},"group":{"href":%q}}`, ann, estate["groups"]),
		},
		{"UnknownProperty", 400, 2015, "POST", staff, `{"nmae":"Staff"}`},
		{
			"UnusedProperty", 400, 2017, "POST", "/v1/directories",
			`{"name":"L","provider":` + ldapProvider(`,"referralMode":"follow"`) + `}`,
		},
		{"MalformedQuery", 400, 2100, "GET", tenant + "/accounts?email=%25zz&q=%", ""},
		{"ParameterEmpty", 400, 2101, "GET", tenant + "/accounts?email", ""},
		{"ParameterRepeated", 400, 2102, "GET", tenant + "/accounts?email=a&email=b", ""},
		{"ParameterInvalid", 400, 2103, "GET", tenant + "/accounts?limit=0", ""},
		{"OrderMalformed", 400, 2104, "GET", tenant + "/accounts?orderBy=email+upwards", ""},
		{"QueryUnsupported", 400, 2105, "GET", tenant + "/accounts?fullName=Jo", ""},
		{"OrderUnsupported", 400, 2106, "GET", tenant + "/accounts?orderBy=directory", ""},
		{"RangeReversed", 400, 2108, "GET", tenant + "/accounts?createdAt=[2016,2015]", ""},
		{"CustomDataKeyEmpty", 400, 3000, "POST", jo + "/customData", `{"":1}`},
		{"CustomDataKeyLong", 400, 3001, "POST", jo + "/customData", `{"` + strings.Repeat("k", 256) + `":1}`},
		{"CustomDataKeyInvalid", 400, 3002, "POST", jo + "/customData", `{"a.b":1}`},
		{"CustomDataReserved", 400, 3003, "POST", jo + "/customData", `{"meta":1}`},
		{"CustomDataSize", 400, 3004, "POST", jo + "/customData", `{"big":"` + strings.Repeat("x", 10<<20) + `"}`},
		{"OwnerKept", 400, 4001, "DELETE", base.To("accounts", b.signedUp.Owner.ID), ""},
		{"OwnerStatus", 400, 4002, "POST", base.To("accounts", b.signedUp.Owner.ID), `{"status":"DISABLED"}`},
		{"MirrorReadOnly", 400, 6100, "POST", mirror + "/groups", `{"name":"Editors"}`},
		{"CannotBecomeMirror", 400, 6201, "POST", staff + "/provider", google(``)},
		{"ProviderFixed", 400, 6202, "POST", mirror + "/provider", google(``)},
		{
			"RedirectURIMissing", 400, 6203, "POST", professional + "/accounts",
			`{"providerData":{"providerId":"linkedin","code":"c"}}`,
		},
		{"StrengthContradicts", 400, 6400, "POST", strength, `{"minLength":101}`},
		{"PasswordReused", 400, 6401, "POST", jo, `{"password":"Changeme1!"}`},
		{"ProviderRefused", 400, 7200, "POST", mirror + "/accounts", `{"providerData":{"providerId":"github","code":"c"}}`},
		{
			"ProviderOtherClient", 400, 7203, "POST", mirror + "/accounts",
			`{"providerData":{"providerId":"github","accessToken":"a"}}`,
		},
		{"OutsideDomains", 400, 7204, "POST", "/v1/accountLinks", ends(copied, jo)},
		{"MirroredProperty", 400, 7202, "POST", copied, `{"givenName":"Sam"}`},
		{
			"DomainBlacklisted", 400, 7205, "POST", strict + "/accounts",
			`{"email":"x@bad.example.test","password":"Changeme1!"}`,
		},
		{
			"DomainNotWhitelisted", 400, 7206, "POST", strict + "/accounts",
			`{"email":"x@elsewhere.test","password":"Changeme1!"}`,
		},
		{
			"TemplateWithoutLink", 400, 7301, "POST", b.template(passwordPolicy(staff) + "/resetEmailTemplates"),
			`{"textBody":"Hello"}`,
		},
		{"AlreadyLinked", 409, 7500, "POST", "/v1/accountLinks", ends(ann, jo)},
		{"LinkToItself", 400, 7501, "POST", "/v1/accountLinks", ends(jo, jo)},
		{"LinkMalformed", 400, 7502, "POST", "/v1/accountLinks", `{"leftAccount":{"href":"x"}}`},
		{"TooManyLinks", 400, 7503, "POST", "/v1/accountLinks", ends(popular, fan)},
		{"LinkSameDirectory", 409, 7504, "POST", "/v1/accountLinks", ends(ann, besideAnn)},
		{"LinkedToOther", 409, 7505, "POST", "/v1/accountLinks", ends(jo, besideAnn)},
		{"SyncHeld", 409, 9007, "POST", agent + "/sync", `{"accounts":[],"complete":true}`},
		{"ContentType", 415, 1101, "POST", staff, "name=Staff"},
	} {
		contentType := "application/json"
		if c.err == "ContentType" {
			contentType = "application/x-www-form-urlencoded"
		}
		b.Send(c.method, c.path, contentType, c.body).WantError(c.status, c.code).Golden("refused_" + c.err)
		met[c.err] = true
	}
	for _, name := range errorsNamed(t) {
		if !met[name] && unseen[name] == "" {
			t.Errorf("the service names apierr.%s, and no request of this test meets it", name)
		}
	}
}

// errorsNamed returns the errors of the catalogue that the packages behind the
// service name.
func errorsNamed(t *testing.T) []string {
	t.Helper()
	found := map[string]bool{}
	behind := []string{
		"../store", ".", "../../../pkg/field", "../../../pkg/list", "../../../pkg/customdata", "../../../pkg/rest",
	}
	for _, dir := range slices.Concat(rules, behind) {
		files, err := filepath.Glob(filepath.FromSlash(dir) + "/*.go")
		if err != nil || len(files) == 0 {
			t.Fatalf("there is no code in %s: %v", dir, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			code, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(code, func(n ast.Node) bool {
				if at, ok := n.(*ast.SelectorExpr); ok {
					if of, ok := at.X.(*ast.Ident); ok && of.Name == "apierr" {
						found[at.Sel.Name] = true
					}
				}
				return true
			})
		}
	}
	delete(found, "Error")                                   // the type
	for _, function := range []string{"From", "IsRefusal"} { // functions, not errors
		delete(found, function)
	}
	return slices.Sorted(maps.Keys(found))
}
