package rest_test

import "testing"

// What a social provider gave to a client is checked in full before the provider
// would be asked (docs/interface/applications.md#accounts-by-provider).
func TestSocialLoginsAreChecked(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	cloud := b.directory("Cloud") + "/accounts"
	directories := map[string]string{
		"google":   b.mirror("Google", google("")) + "/accounts",
		"github":   b.mirror("GitHub", social("github", "")) + "/accounts",
		"facebook": b.mirror("Facebook", social("facebook", "")) + "/accounts",
		"twitter":  b.mirror("Twitter", social("twitter", "")) + "/accounts",
		"linkedin": b.mirror("LinkedIn", social("linkedin", "")) + "/accounts",
		"linkedin with redirect": b.mirror("LinkedIn 2",
			social("linkedin", `,"redirectUri":"https://app.localhost/callback"`)) + "/accounts",
		"forge": b.mirror("Forge", generic("")) + "/accounts", "ldap": b.mirror("Staff", ldapProvider("")) + "/accounts",
	}
	for _, c := range []struct {
		at, data string
		code     int
	}{
		{"google", `{}`, 2000},
		{"google", `{"providerId":null,"accessToken":"a"}`, 2000},
		{"google", `{"providerId":" ","accessToken":"a"}`, 2000},
		{"google", `{"providerId":"google"}`, 2000},
		{"google", `{"providerId":"google","accessToken":"","code":null}`, 2000},
		{"google", `{"providerId":"google","accessToken":"a","code":"c"}`, 2000},
		{"google", `[]`, 2004},
		{"google", `"google"`, 2004},
		{"google", `{"providerId":"google","accessToken":1}`, 2004},
		{"google", `{"providerId":"google","accessToken":"a","accountStore":{}}`, 2004},
		{"google", `{"providerId":"google","accessToken":"a","userId":"108"}`, 2015},
		{"google", `{"providerId":"facebook","accessToken":"a"}`, 2014},
		{"google", `{"providerId":"native","accessToken":"a"}`, 2014},
		{"ldap", `{"providerId":"ldap","accessToken":"a"}`, 2014},
		// No provider can be asked for anything here, so that each access token may be that of another client.
		{"google", `{"providerId":"google","accessToken":"a"}`, 7203},
		{"google", `{"providerId":"Google","code":"c"}`, 7200},
		{"google", `{"providerId":"google","code":"c","redirectUri":"https://app.localhost/callback"}`, 7200},
		{"facebook", `{"providerId":"facebook","code":"c"}`, 2000},
		{"facebook", `{"providerId":"facebook","accessToken":"a"}`, 7203},
		{"twitter", `{"providerId":"twitter","accessToken":"a"}`, 2000},
		{"twitter", `{"providerId":"twitter","accessTokenSecret":"s"}`, 2000},
		{"twitter", `{"providerId":"twitter","accessToken":"a","accessTokenSecret":"s"}`, 7200},
		{"linkedin", `{"providerId":"linkedin","code":"c"}`, 6203},
		{"linkedin", `{"providerId":"linkedin","code":"c","redirectUri":"https://app.localhost/callback"}`, 7200},
		{"linkedin", `{"providerId":"linkedin","accessToken":"a"}`, 7203},
		{"linkedin with redirect", `{"providerId":"linkedin","code":"c"}`, 7200},
		{"forge", `{"providerId":"forge","code":"c"}`, 7200},
		{"forge", `{"providerId":"forge","accessToken":"a"}`, 7203},
		{"github", `{"providerId":"github","code":"c"}`, 7200},
	} {
		b.Post(directories[c.at], `{"providerData":`+c.data+`}`).WantError(400, c.code)
	}
	b.Post(cloud, `{"providerData":{"providerId":"native","accessToken":"a"}}`).WantError(400, 2014)

	for _, sentBack := range []string{
		`{"href":"https://localhost/v1/accounts/x/providerData"}`, `{"href":"x","providerId":"google","userInfo":{}}`, `null`,
	} {
		b.Post(directories["google"], `{"email":"jo@example.test","password":"Changeme1!","providerData":`+sentBack+`}`).
			WantError(400, 6100)
	}
	b.Post(cloud, `{"email":"jo@example.test","password":"Changeme1!","providerData":{"href":"x"}}`).Want(201)
}
