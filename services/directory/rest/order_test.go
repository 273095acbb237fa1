package rest_test

import "testing"

// What is required is refused before what has a wrong value, and that before what
// has a wrong form (docs/interface/errors.md#statuses), whatever the order of the
// members.
func TestOrderOfChecks(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	staff := b.directory("Staff")
	reset := b.template(passwordPolicy(staff) + "/resetEmailTemplates")
	agent := b.agent("A", adProvider(``))
	forge := b.mirror(
		"Forge", `{"providerId":"forge","clientId":"c","clientSecret":"s","authorizationEndpoint":"https://forge.localhost/a",
		"tokenEndpoint":"https://forge.localhost/t","resourceEndpoint":"https://forge.localhost/me"}`)
	for _, c := range []struct {
		path, body string
		code       int
	}{
		{passwordPolicy(staff) + "/strength", `{"minDiacritic":-1,"preventReuse":null}`, 2000},
		{reset, `{"mimeType":"x","subject":null}`, 2000},
		{reset, `{"fromEmailAddress":"x","textBody":" "}`, 2000},
		{reset, `{"subject":"a\nb","defaultModel":{}}`, 2000},
		{reset, `{"fromEmailAddress":"x","defaultModel":{"linkBaseUrl":"x"},"mimeType":"x"}`, 2003},
		{agent, `{"config":{"pollInterval":0,"baseDn":null}}`, 2000},
		{agent, `{"config":{"pollInterval":0,"referralMode":"x"}}`, 2003},
		{forge + "/provider", `{"providerType":"x","clientId":null}`, 2000},
		{forge + "/provider", `{"tokenEndpoint":"x","providerType":"x"}`, 2003},
		{forge + "/provider", `{"tokenEndpoint":"x","userInfoMappingRules":{"items":[{"name":"x","accountAttributes":["status"]}]}}`, 2002},
		{"/v1/directories", `{"name":"N","provider":{"providerId":"forge","providerType":"x"}}`, 2000},
		{"/v1/directories", `{"status":"x","provider":{"providerId":"google","display":"x","clientId":"c","clientSecret":"s","redirectUri":"r"}}`, 2000},
		{"/v1/directories", `{"name":"N","provider":` + social("github", `,"scope":["\u0007"],
			"userInfoMappingRules":{"items":[{"name":"x","accountAttributes":["status"]}]}`) + `}`, 2002},
		{"/v1/directories", `{"name":"N","provider":{"providerId":"native","clientId":"c"}}`, 2017},
	} {
		t.Run(c.body, func(t *testing.T) {
			before := b.Get(c.path)
			b.Post(c.path, c.body).WantError(400, c.code)
			if after := b.Get(c.path); string(after.Body) != string(before.Body) && before.Status == 200 {
				t.Errorf("the refused body changed it: %s", after.Body)
			}
		})
	}
}
