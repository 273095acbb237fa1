package mappingrule

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
)

// FuzzChange: a body is refused with an error of the interface, or returns rules
// that name something and can be sent back as they are read.
func FuzzChange(f *testing.F) {
	for _, seed := range []string{`{"items":[{"name":"mail","accountAttributes":["email"]}]}`, `{"items":[{"nameFormat":"urn:x","accountAttributes":["customData.a"]}]}`,
		`{"items":null}`, `{}`, `{"items":[null]}`, `{"items":[{"name":"a","nameFormat":null,"accountAttributes":["email","email"]}],"href":1}`, `[]`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		for _, kind := range []Kind{UserInfo, AttributeStatement} {
			rules := Rules{Kind: kind}
			var in Change
			err := field.Decode([]byte(body), &in, nil)
			if err == nil {
				err = rules.Apply(in)
			}
			if err != nil {
				if apierr.From(err).Status != 400 {
					t.Fatalf("%s returns %v", body, err)
				}
				continue
			}
			for _, rule := range rules.Items {
				if rule.Name == nil && (rule.NameFormat == nil || kind == UserInfo) || len(rule.AccountAttributes) == 0 {
					t.Fatalf("%s returns %+v", body, rule)
				}
			}
			read, err := json.Marshal(map[string]any{"items": rules.Items})
			if err != nil {
				t.Fatal(err)
			}
			var again Change
			if err := field.Decode(read, &again, nil); err != nil {
				t.Fatalf("%s returns %s, which returns %v", body, read, err)
			}
			if err := rules.Apply(again); err != nil {
				t.Fatalf("%s returns %s, which returns %v", body, read, err)
			}
		}
	})
}

// FuzzTarget: what a rule may name is an attribute of the list, or a path
// of keys that customData can have.
func FuzzTarget(f *testing.F) {
	for _, seed := range []string{"email", "customData.a", "customData.a.b_c-1", "customData.", "customData.meta", "customData.a.-b", "status", "customData.a\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, target string) {
		if !isTarget(target) {
			return
		}
		path, custom := strings.CutPrefix(target, "customData.")
		if !custom {
			if !strings.Contains(" email username givenName middleName surname ", " "+target+" ") || strings.Contains(target, " ") {
				t.Errorf("%q is taken", target)
			}
			return
		}
		for key := range strings.SplitSeq(path, ".") {
			if key == "" || len(key) > 255 || key[0] == '-' || strings.Trim(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" ||
				strings.Contains(" href createdAt modifiedAt meta spMeta spmeta ionmeta ionMeta ", " "+key+" ") {
				t.Errorf("%q is taken for its key %q", target, key)
			}
		}
	})
}
