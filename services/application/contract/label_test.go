package contract_test

import (
	"strings"
	"testing"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
)

func dnsLabels(t *testing.T, s subject) {
	n, other := newTenant(t, s), newTenant(t, s)
	shop, theirs := s.NewApplication(t, n.id), s.NewApplication(t, other.id)
	made := must(s.API.Application(t.Context(), n.ref(shop)))(t)
	set := func(n tenant, application id.ID, label string) (applicationapi.Application, error) {
		return s.API.SetDNSLabel(t.Context(),
			applicationapi.SetDNSLabel{Tenant: n.id, Application: application, Label: label})
	}
	label := "l" + strings.ToLower(n.id.String())

	t.Run("each application has one, and its own origin", func(t *testing.T) {
		their := must(s.API.Application(t.Context(), other.ref(theirs)))(t)
		if made.DNSLabel == "" || made.DNSLabel == their.DNSLabel {
			t.Errorf("the labels are %q and %q", made.DNSLabel, their.DNSLabel)
		}
		equal(t, "the domain", made.DomainName("apps.example"), made.DNSLabel+".apps.example")
		if len(made.AuthorizedOriginURIs) != 1 ||
			!strings.HasPrefix(made.AuthorizedOriginURIs[0], "https://"+made.DNSLabel+".") {
			t.Errorf("the application lets in %v", made.AuthorizedOriginURIs)
		}
	})
	t.Run("the console has none", func(t *testing.T) {
		console := must(s.API.Application(t.Context(), n.ref(n.signUp.Console)))(t)
		equal(t, "the label", console.DNSLabel, "")
		equal(t, "the domain", console.DomainName("apps.example"), "")
		equal(t, "the number of origins", len(console.AuthorizedOriginURIs), 0)
		refuse(set(n, n.signUp.Console, label))(t, apierr.BadRequest)
	})
	t.Run("it is changed, in any letter case", func(t *testing.T) {
		equal(t, "the answer", must(set(n, shop, strings.ToUpper(label)))(t).DNSLabel, label)
		equal(t, "the label", must(s.API.Application(t.Context(), n.ref(shop)))(t).DNSLabel, label)
		equal(t, "the same again", must(set(n, shop, label))(t).DNSLabel, label)
	})
	t.Run("one of another tenant's application is taken", func(t *testing.T) {
		refuse(set(other, theirs, label))(t, apierr.Exists)
		refuse(set(other, theirs, strings.ToUpper(label)))(t, apierr.Exists)
	})
	t.Run("a deleted application leaves it to others", func(t *testing.T) {
		gone := s.NewApplication(t, n.id)
		left := must(s.API.Application(t.Context(), n.ref(gone)))(t).DNSLabel
		s.Delete(t, n.ref(gone))
		equal(t, "the label", must(set(other, theirs, left))(t).DNSLabel, left)
	})
	for what, c := range map[string]struct {
		label string
		want  error
	}{
		"one letter":          {string(label[len(label)-1]), nil},
		"as long as it may":   {label + strings.Repeat("x", 63-len(label)), nil},
		"a digit first":       {"1" + label, nil},
		"too long":            {strings.Repeat("x", 64), apierr.TooLong},
		"empty":               {"", apierr.Required},
		"blank":               {" ", apierr.Required},
		"a hyphen first":      {"-a", apierr.Format},
		"a hyphen last":       {"a-", apierr.Format},
		"two labels":          {"a.b", apierr.Format},
		"an underscore":       {"a_b", apierr.Format},
		"a letter beyond a-z": {"bücher", apierr.Format},
		"a path":              {"a/b", apierr.Format},
	} {
		t.Run(what, func(t *testing.T) { refuse(set(n, shop, c.label))(t, c.want) })
	}
	t.Run("an application of another tenant", func(t *testing.T) {
		refuse(set(other, shop, "mine"))(t, apierr.NotFound)
		refuse(set(other, shop, "-"))(t, apierr.NotFound)
		refuse(set(n, newID(), "mine"))(t, apierr.NotFound)
	})
	t.Run("its web config leads to an application", func(t *testing.T) {
		equal(t, "the application", must(s.API.ApplicationOfWebConfig(t.Context(), n.ref(made.WebConfigID)))(t).ID, shop)
		for _, at := range []directoryapi.Ref{other.ref(made.WebConfigID), n.ref(shop), n.ref(newID())} {
			refuse(s.API.ApplicationOfWebConfig(t.Context(), at))(t, apierr.NotFound)
		}
	})
}
