package notification

import (
	"net/url"
	"testing"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/secure"
)

func TestLinksCarryTheTokenInTheirQuery(t *testing.T) {
	for base, want := range map[string]string{
		"https://a.test":              "https://a.test?sptoken=T0ken",
		"https://a.test/verify":       "https://a.test/verify?sptoken=T0ken",
		"https://a.test/verify?":      "https://a.test/verify?sptoken=T0ken",
		"https://a.test/verify?x=1":   "https://a.test/verify?x=1&sptoken=T0ken",
		"https://a.test/verify?x=1&":  "https://a.test/verify?x=1&sptoken=T0ken",
		"https://a.test/#/verify":     "https://a.test/?sptoken=T0ken#/verify",
		"https://a.test/?x=1#/verify": "https://a.test/?x=1&sptoken=T0ken#/verify",
		"https://a.test/#/verify?x=1": "https://a.test/?sptoken=T0ken#/verify?x=1",
	} {
		got := addToken(base, "T0ken")
		if got != want {
			t.Errorf("%s became %s, want %s", base, got, want)
		}
		if parsed, err := url.Parse(got); err != nil || parsed.Query().Get("sptoken") != "T0ken" {
			t.Errorf("%s has no sptoken: %v", got, err)
		}
	}
	if got := addToken("https://a.test", "a&b c"); got != "https://a.test?sptoken=a%26b+c" {
		t.Errorf("the token is not encoded: %s", got)
	}
}

func TestATemplateWithoutABaseLeadsToTheDeployment(t *testing.T) {
	s := &Service{base: "https://id.example.test:8443/v1"}
	own := "https://shop.example.test/verify"
	for _, c := range []struct {
		template directoryapi.EmailTemplate
		want     string
	}{
		{directoryapi.EmailTemplate{Workflow: directoryapi.Verification},
			"https://id.example.test:8443/emailVerificationTokens"},
		{directoryapi.EmailTemplate{Workflow: directoryapi.Reset}, "https://id.example.test:8443/passwordReset"},
		{directoryapi.EmailTemplate{Workflow: directoryapi.Welcome}, ""},
		{directoryapi.EmailTemplate{Workflow: directoryapi.Verification, LinkBaseURL: &own}, own},
	} {
		if got := s.linkBase(c.template); got != c.want {
			t.Errorf("%s leads to %q, want %q", c.template.Workflow, got, c.want)
		}
	}
}

func TestTheMailServersAddress(t *testing.T) {
	for address, want := range map[secure.Secret]MailServer{
		"smtp://localhost:2525":           {Host: "localhost", Port: 2525},
		"smtp://127.0.0.1:25/":            {Host: "127.0.0.1", Port: 25},
		"smtps://[::1]:465":               {Host: "::1", Port: 465, Encryption: ImplicitTLS},
		"smtp://jo:p%40ss@mail.test:587":  {Host: "mail.test", Port: 587, User: "jo", Password: "p@ss"},
		"smtp://a%40b.c:pw@mail.test:587": {Host: "mail.test", Port: 587, User: "a@b.c", Password: "pw"},
	} {
		if got, err := ParseMailServer(address); err != nil || got != want {
			t.Errorf("%s became %+v, %v", address.Reveal(), got, err)
		}
	}
	for _, address := range []secure.Secret{
		"", "localhost:25", "smtp://localhost", "smtp://:25", "http://localhost:25", "smtp://localhost:0",
		"smtp://localhost:99999",
		"smtp://jo@localhost:25", "smtp://localhost:25/path", "smtp://localhost:25?tls=no", "smtp://jo:geheim%@localhost:25",
	} {
		_, err := ParseMailServer(address)
		if err == nil {
			t.Errorf("%s was accepted", address.Reveal())
			continue
		}
		if text := err.Error(); text != errMailServerAddress.Error() {
			t.Errorf("the refusal of %s may repeat its password: %s", address.Reveal(), text)
		}
	}
}
