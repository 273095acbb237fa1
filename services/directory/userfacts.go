package directory

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/customdata"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/mappingrule"
)

// Limits of the user object of a provider, which PostgreSQL keeps as jsonb.
const (
	maxUserInfo      = 1 << 20 // bytes
	maxUserInfoDepth = 50
	maxNumber        = 300  // characters
	maxExponent      = 1000 // of a number, in either direction
)

// readUserInfo reads the user object of a provider. text is the same object as it
// is kept and shown: NUL characters, which PostgreSQL cannot keep, are removed.
func readUserInfo(raw json.RawMessage) (object map[string]any, text json.RawMessage, err error) {
	refuse := func(what string) error {
		return apierr.ProviderRefused.Because("the user object of the provider %s", what)
	}
	if len(raw) > maxUserInfo {
		return nil, nil, refuse("is larger than 1 MiB")
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if err := decoder.Decode(&object); err != nil || object == nil || decoder.More() {
		return nil, nil, refuse("is not a JSON object")
	}
	cleaned, fits := cleanValue(object, maxUserInfoDepth)
	if !fits {
		return nil, nil, refuse("is nested too deep or has a number that is too long")
	}
	object, _ = cleaned.(map[string]any)
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err = encoder.Encode(object)
	return object, bytes.TrimSpace(out.Bytes()), err
}

func cleanValue(value any, depth int) (cleaned any, fits bool) {
	if depth == 0 {
		return nil, false
	}
	switch v := value.(type) {
	case string:
		return strings.ReplaceAll(v, "\x00", ""), true
	case json.Number:
		_, exponent, _ := strings.Cut(strings.ToLower(v.String()), "e")
		power, err := strconv.Atoi(cmp.Or(exponent, "0"))
		return v, len(v) <= maxNumber && err == nil && max(power, -power) <= maxExponent
	case []any:
		for i := range v {
			if v[i], fits = cleanValue(v[i], depth-1); !fits {
				return nil, false
			}
		}
	case map[string]any:
		members := make(map[string]any, len(v))
		for name, member := range v {
			if members[strings.ReplaceAll(name, "\x00", "")], fits = cleanValue(member, depth-1); !fits {
				return nil, false
			}
		}
		return members, true
	}
	return value, true
}

// source returns the value that a mapping rule reads, if the provider states one.
type source func(mappingrule.Rule) (value any, found bool)

func userInfoSources(object map[string]any) source {
	return func(rule mappingrule.Rule) (any, bool) {
		if rule.Name == nil {
			return nil, false
		}
		return mappingrule.Lookup(object, *rule.Name)
	}
}

// attributeSources are the attributes of a SAML assertion: an attribute with
// several values is a list.
func attributeSources(attributes []directoryapi.ProviderAttribute) source {
	return func(rule mappingrule.Rule) (any, bool) {
		at := slices.IndexFunc(attributes, func(a directoryapi.ProviderAttribute) bool {
			return (rule.Name == nil || *rule.Name == a.Name) && (rule.NameFormat == nil || *rule.NameFormat == a.NameFormat) && len(a.Values) > 0
		})
		if at < 0 {
			return nil, false
		}
		return oneOrList(attributes[at].Values), true
	}
}

func oneOrList(values []string) any {
	if len(values) == 1 {
		return values[0]
	}
	list := make([]any, len(values))
	for i, value := range values {
		list[i] = value
	}
	return list
}

// shownAttributes are the attributes of a SAML assertion as the provider data shows
// them (docs/interface/directories.md#provider-data).
func shownAttributes(attributes []directoryapi.ProviderAttribute) map[string]json.RawMessage {
	shown := map[string]json.RawMessage{}
	for _, a := range attributes {
		cleaned, _ := cleanValue(oneOrList(a.Values), maxUserInfoDepth)
		text, err := json.Marshal(cleaned)
		if name := strings.ReplaceAll(a.Name, "\x00", ""); err == nil && name != "" {
			shown[name] = text
		}
	}
	return shown
}

// apply lets mapping rules overwrite the facts. A source that is missing leaves its
// targets as they are (docs/interface/directories.md#mapping-rules). The email of a
// rule is verified only where it is the one that the provider calls verified.
func (f *userFacts) apply(rules []mappingrule.Rule, of source, in directoryapi.ProviderAccount) {
	for _, rule := range rules {
		value, found := of(rule)
		if !found {
			continue
		}
		for _, target := range rule.AccountAttributes {
			if keys, isData := strings.CutPrefix(target, "customData."); isData {
				f.data = append(f.data, mappedValue{strings.Split(keys, "."), value})
				continue
			}
			single := value
			if list, isList := value.([]any); isList && len(list) > 0 {
				single = list[0]
			}
			text, ok := mappingrule.Text(single)
			if !ok {
				continue
			}
			switch target {
			case "email":
				f.email = text
				f.emailVerified = in.EmailVerified && (in.Email == "" || len(in.UserInfo) == 0 || field.SameMailbox(in.Email, text))
			case "username":
				f.username = text
			case "givenName":
				f.givenName = text
			case "middleName":
				f.middleName = text
			case "surname":
				f.surname = text
			}
		}
	}
}

// clean drops what an account cannot have: an email that is none, a user name with
// characters that nobody sees, names that are too long.
func (f *userFacts) clean() {
	f.email = strings.TrimSpace(f.email)
	if utf8.RuneCountInString(f.email) > 255 || field.Email("email", f.email) != nil {
		f.email, f.emailVerified = "", false
	}
	username, err := field.Name(field.Some(strings.ToValidUTF8(f.username, "")), "username", 255)
	if err != nil {
		username = ""
	}
	f.username = username
	for _, name := range []*string{&f.givenName, &f.middleName, &f.surname} {
		*name = strings.TrimSpace(strings.ReplaceAll(strings.ToValidUTF8(*name, ""), "\x00", ""))
		if utf8.RuneCountInString(*name) > 255 {
			*name = string([]rune(*name)[:255])
		}
	}
}

// mappedValue is a value for the customData of an account, under a path of keys.
type mappedValue struct {
	keys  []string
	value any
}

// into returns a document with the value: what stands beside it in the objects on
// its path stays.
func (m mappedValue) into(d customdata.Document) (customdata.Document, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(d.Append(nil), &members); err != nil {
		return d, err
	}
	value, err := within(members[m.keys[0]], m.keys[1:], m.value)
	if err != nil {
		return d, err
	}
	in, err := customdata.Parse(slices.Concat([]byte(`{`+strconv.Quote(m.keys[0])+`:`), value, []byte(`}`)))
	if err != nil {
		return d, err
	}
	return d.Merge(in)
}

// within writes a value under keys into the text of an object, or into a new one
// where there is none.
func within(object json.RawMessage, keys []string, value any) (json.RawMessage, error) {
	if len(keys) == 0 {
		return json.Marshal(value)
	}
	var members map[string]json.RawMessage
	if len(object) > 0 && object[0] == '{' {
		if err := json.Unmarshal(object, &members); err != nil {
			return nil, err
		}
	}
	if members == nil {
		members = map[string]json.RawMessage{}
	}
	inner, err := within(members[keys[0]], keys[1:], value)
	if err != nil {
		return nil, err
	}
	members[keys[0]] = inner
	return json.Marshal(members)
}
