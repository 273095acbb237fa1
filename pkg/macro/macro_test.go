package macro

import (
	"html"
	"slices"
	"strings"
	"testing"
)

func TestMacros(t *testing.T) {
	known := map[string]string{"account.givenName": "Jo", "account.surname": `<b>"O'Neil" & Sons</b>`, "account.middleName": "", "url": "${account.givenName}"}
	for _, c := range []struct{ name, template, want string }{
		{"a value", "Hello ${account.givenName}!", "Hello Jo!"},
		{"a value of the quiet form", "Hello $!{account.givenName}!", "Hello Jo!"},
		{"an empty value", "[${account.middleName}]", "[]"},
		{"a missing value prints its macro", "[${account.customData.color}]", "[${account.customData.color}]"},
		{"a missing value of the quiet form prints nothing", "[$!{account.customData.color}]", "[]"},
		{"a value is not searched for macros", "$!{url}", "${account.givenName}"},
		{"macros side by side", "$!{account.givenName}${account.givenName}", "JoJo"},
		{"names keep their case", "${account.givenname}", "${account.givenname}"},
		{"dollars", "$5 and $$ and $", "$5 and $$ and $"},
		{"a dollar before a macro", "$${account.givenName}", "$Jo"},
		{"an open macro", "${account.givenName", "${account.givenName"},
		{"an empty macro", "${} $!{}", "${} $!{}"},
		{"no logic", "#if(1)$!{account.getClass()}#end", "#if(1)$!{account.getClass()}#end"},
		{"a macro inside a macro", "${a${account.givenName}}", "${aJo}"},
		{"a name that is too long", "${" + strings.Repeat("a", 1000) + "}", "${" + strings.Repeat("a", 1000) + "}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Expand(c.template, known, func(v string) string { return v }); got != c.want {
				t.Errorf("%q became %q, want %q", c.template, got, c.want)
			}
		})
	}
	t.Run("values are escaped in HTML, the template is not", func(t *testing.T) {
		got := Expand("<i>${account.surname}</i>", known, html.EscapeString)
		if want := "<i>&lt;b&gt;&#34;O&#39;Neil&#34; &amp; Sons&lt;/b&gt;</i>"; got != want {
			t.Errorf("the template became %s, want %s", got, want)
		}
	})
}

func TestNames(t *testing.T) {
	for _, c := range []struct {
		template string
		want     []string
	}{
		{"no macro, $5 and $ and $!", nil},
		{"$!{url}", []string{"url"}},
		{"${account.email}$${url}$!{account.customData.a_b-1}", []string{"account.email", "url", "account.customData.a_b-1"}},
		{"${" + strings.Repeat("a", maxMacro-1) + "}", []string{strings.Repeat("a", maxMacro-1)}},
	} {
		if got, err := Names(c.template); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%q has the names %q, %v; want %q", c.template, got, err, c.want)
		}
	}
	for _, broken := range []string{
		"${", "$!{", "Hello ${account.email", "$!{url", "${}", "$!{}", "${ url}", "${1url}", "${.url}", "${url!}", "$!{account.getClass()}",
		"${a${url}}", "${url}$!{", "${ä}", "${" + strings.Repeat("a", maxMacro) + "}",
	} {
		if names, err := Names(broken); err == nil {
			t.Errorf("%q was read as %q", broken, names)
		}
	}
}

func FuzzExpand(f *testing.F) {
	for _, seed := range []string{"Hello ${account.givenName}", "$!{x}", "$$$!{", "${${account.givenName}}", "$!{url}$", "\x00${\xff}"} {
		f.Add(seed, "value $!{url}")
	}
	f.Fuzz(func(t *testing.T, template, value string) {
		const mark = "\x01"
		got := Expand(template, map[string]string{"account.givenName": value, "url": ""}, func(v string) string {
			if v != "" && v != value {
				t.Fatalf("escape was given %q", v)
			}
			return mark
		})
		// Each mark is one macro of the template: a value brings no further one.
		most := strings.Count(template, "${account.givenName}") + strings.Count(template, "$!{account.givenName}") +
			strings.Count(template, "${url}") + strings.Count(template, "$!{url}") + strings.Count(template, mark)
		if n := strings.Count(got, mark); n != most {
			t.Fatalf("%q has %d values, want %d: %q", template, n, most, got)
		}
		if len(got) > len(template) {
			t.Fatalf("%q grew to %q", template, got)
		}
		if !strings.Contains(template, "$") && got != template {
			t.Fatalf("%q has no macro and became %q", template, got)
		}
		// What is accepted on save has no macro that the mail would not see.
		names, err := Names(template)
		if err == nil && strings.Count(template, "${")+strings.Count(template, "$!{") != len(names) {
			t.Fatalf("%q has the names %q alone", template, names)
		}
	})
}

func TestKeys(t *testing.T) {
	const prefix = "account.customData."
	for template, want := range map[string][]string{
		"": nil, "$!{url} $5 ${account.customData.} ${account.customData": nil,
		"$!{account.customData.plan}": {"plan"},
		"${account.customData.b_1}$${account.customData.a-2} $!{account.customData.b_1}${account.directory.customData.c}": {"b_1", "a-2"},
	} {
		if got := Keys(template, prefix); !slices.Equal(got, want) {
			t.Errorf("%q has the keys %q, want %q", template, got, want)
		}
	}
}
