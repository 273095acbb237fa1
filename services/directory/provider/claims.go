package provider

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/customdata"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/locale"
	"github.com/doorward/doorward/pkg/mappingrule"
	"github.com/doorward/doorward/services/directory"
	"github.com/doorward/doorward/services/directory/store"
)

// providerClaims are the claims (attributes) of a user at a provider, after the mapping rules.
type providerClaims struct {
	externalID                               string
	email                                    string
	emailVerified, emailUnstated             bool
	trustsReusedEmails                       bool // a known email may come with another persistent NameID
	username, givenName, middleName, surname string
	locale                                   string // in canonical form; of an account that has none
	// values of mapping rules for the customData of the account
	customData   []mappedValue
	providerData map[string]json.RawMessage // what the provider data of the account show
}

// mapClaims validates the profile of a user at a provider and applies the mapping rules of its
// directory (claims mapping, attribute mapping). The rules are managed in mappingrule.go;
// account.go writes the result into the account and stores its provider data.
func mapClaims(p store.AccountProvider, in directoryapi.ProviderUser) (providerClaims, error) {
	claims := providerClaims{
		email: in.Email, emailVerified: in.EmailVerified, emailUnstated: in.EmailUnstated,
		username: in.Username, givenName: in.GivenName, middleName: in.MiddleName, surname: in.Surname,
		providerData: map[string]json.RawMessage{}, trustsReusedEmails: valueOf(p.Settings.TrustsReusedEmails),
	}
	source := attributeSource(in.Attributes)
	maps.Copy(claims.providerData, attributesOfProviderData(in.Attributes))
	if len(in.UserInfo) > 0 {
		object, text, err := readUserInfo(in.UserInfo)
		if err != nil {
			return claims, err
		}
		claims.providerData["userInfo"], source = text, userInfoSource(object)
		claims.locale = localeOf(object)
	}
	claims.applyMappingRules(p.Rules, source, in)
	claims.sanitize()
	if claims.email == "" {
		return claims, apierr.ProviderIncomplete.Because(
			"the provider %q states no email address of the user; request a scope that shares it, "+
				"or add a mapping rule for email", p.ProviderID)
	}
	if claims.externalID = cmp.Or(in.ExternalID,
		field.LoginName(claims.email)); len(claims.externalID) > maxExternalID ||
		strings.ContainsRune(claims.externalID, 0) {
		return claims, apierr.ProviderIncomplete.Because(
			"the id that the provider %q states of the user is not a text of at most %d bytes",
			p.ProviderID, maxExternalID)
	}
	return claims, directory.CheckMirrorDomain(p.RegistrationPolicy, claims.email)
}

// localeOf returns the claim locale of a user (OpenID Connect Core 1.0, section 5.1) in canonical form, or
// "". Some providers write it with an underscore.
func localeOf(userInfo map[string]any) string {
	text, _ := userInfo["locale"].(string)
	tag, err := locale.Canonical("locale", strings.ReplaceAll(text, "_", "-"))
	if err != nil {
		return ""
	}
	return tag
}

// maxExternalID is the longest id of a user at a provider, in bytes: the column is indexed.
const maxExternalID = 1000

// Limits of the user object of a provider, which PostgreSQL keeps as jsonb.
const (
	maxUserInfo      = 1 << 20 // bytes
	maxUserInfoDepth = 50
	maxNumber        = 300  // characters
	maxExponent      = 1000 // of a number, in either direction
)

// readUserInfo parses the user object of a provider (userinfo). text is the object as it is stored
// and shown: without NUL characters, which PostgreSQL cannot store.
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

// cleanValue returns a JSON value without NUL characters; fits is false for one that is nested too
// deep or has a number that is too long.
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

// claimSource returns the value that a mapping rule reads, if the provider states one.
type claimSource func(mappingrule.Rule) (value any, found bool)

// userInfoSource reads claims from the user object of a social or OAuth provider.
func userInfoSource(object map[string]any) claimSource {
	return func(rule mappingrule.Rule) (any, bool) {
		if rule.Name == nil {
			return nil, false
		}
		return mappingrule.Lookup(object, *rule.Name)
	}
}

// attributeSource reads claims from the attributes of a SAML assertion: an attribute with several
// values is a list.
func attributeSource(attributes []directoryapi.ProviderAttribute) claimSource {
	return func(rule mappingrule.Rule) (any, bool) {
		at := slices.IndexFunc(attributes, func(a directoryapi.ProviderAttribute) bool {
			return (rule.Name == nil || *rule.Name == a.Name) &&
				(rule.NameFormat == nil || *rule.NameFormat == a.NameFormat) &&
				len(a.Values) > 0
		})
		if at < 0 {
			return nil, false
		}
		return singleOrList(attributes[at].Values), true
	}
}

// singleOrList returns the only value, or all values as a list.
func singleOrList(values []string) any {
	if len(values) == 1 {
		return values[0]
	}
	list := make([]any, len(values))
	for i, value := range values {
		list[i] = value
	}
	return list
}

// attributesOfProviderData returns the attributes of a SAML assertion as the provider data show
// them (docs/interface/directories.md#provider-data).
func attributesOfProviderData(attributes []directoryapi.ProviderAttribute) map[string]json.RawMessage {
	shown := map[string]json.RawMessage{}
	for _, a := range attributes {
		cleaned, _ := cleanValue(singleOrList(a.Values), maxUserInfoDepth)
		text, err := json.Marshal(cleaned)
		name := strings.ReplaceAll(a.Name, "\x00", "")
		if err != nil || name == "" {
			continue
		}
		shown[name] = text
	}
	return shown
}

// applyMappingRules overwrites claims by mapping rules. A rule whose source is missing changes
// nothing (docs/interface/directories.md#mapping-rules). An email of a rule is verified only where
// the provider calls that email verified.
func (c *providerClaims) applyMappingRules(rules []mappingrule.Rule, source claimSource, in directoryapi.ProviderUser) {
	for _, rule := range rules {
		value, found := source(rule)
		if !found {
			continue
		}
		for _, target := range rule.AccountAttributes {
			if keys, isData := strings.CutPrefix(target, "customData."); isData {
				c.customData = append(c.customData, mappedValue{strings.Split(keys, "."), value})
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
				c.email = text
				c.emailVerified = in.EmailVerified &&
					(in.Email == "" || len(in.UserInfo) == 0 || field.SameMailbox(in.Email, text))
			case "username":
				c.username = text
			case "givenName":
				c.givenName = text
			case "middleName":
				c.middleName = text
			case "surname":
				c.surname = text
			}
		}
	}
}

// sanitize removes what an account cannot have: an invalid email, a user name with invisible
// characters or a colon; names that are too long are cut.
func (c *providerClaims) sanitize() {
	c.email = strings.TrimSpace(c.email)
	if utf8.RuneCountInString(c.email) > 255 || field.Email("email", c.email) != nil {
		c.email, c.emailVerified = "", false
	}
	username, err := field.Username(field.Some(strings.ToValidUTF8(c.username, "")), "username", 255)
	if err != nil {
		username = ""
	}
	c.username = username
	for _, name := range []*string{&c.givenName, &c.middleName, &c.surname} {
		*name = strings.TrimSpace(strings.ReplaceAll(strings.ToValidUTF8(*name, ""), "\x00", ""))
		if utf8.RuneCountInString(*name) > 255 {
			*name = string([]rune(*name)[:255])
		}
	}
}

// mappedValue is a value for the customData of an account, and its path.
type mappedValue struct {
	keys  []string
	value any
}

// mergeInto returns a document with the value added. Other members of the objects on its path
// stay.
func (m mappedValue) mergeInto(d customdata.Document) (customdata.Document, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(d.Append(nil), &members); err != nil {
		return d, err
	}
	value, err := setPath(members[m.keys[0]], m.keys[1:], m.value)
	if err != nil {
		return d, err
	}
	in, err := customdata.Parse(slices.Concat([]byte(`{`+strconv.Quote(m.keys[0])+`:`), value, []byte(`}`)))
	if err != nil {
		return d, err
	}
	return d.Merge(in)
}

// setPath returns the text of an object with the value set at a path; without an object, it makes
// one.
func setPath(object json.RawMessage, keys []string, value any) (json.RawMessage, error) {
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
	inner, err := setPath(members[keys[0]], keys[1:], value)
	if err != nil {
		return nil, err
	}
	members[keys[0]] = inner
	return json.Marshal(members)
}
