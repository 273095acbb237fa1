// Package mappingrule has the attribute mapping rules: by them the attributes (claims) of a user at a
// provider become attributes of the account, and attributes of an account become attributes in
// SAML assertions (docs/interface/directories.md#mapping-rules). The directory service stores the
// rules of its mirror directories, the application service those of its applications.
package mappingrule

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
)

// Limits of mapping rules.
const (
	maxRules      = 100
	maxTargets    = 20   // account attributes of a rule
	maxSourceName = 1000 // characters of name and nameFormat
	maxTarget     = 1000 // characters of an account attribute
)

// Kind is the collection in the URL of mapping rules.
type Kind string

// The kinds of rules: for the user object (user info) of a social or generic OAuth provider, and for
// the attributes of a SAML assertion.
const (
	UserInfo           Kind = "userInfoMappingRules"
	AttributeStatement Kind = "attributeStatementMappingRules"
)

// Rules are the rules of one directory or one identity provider.
type Rules struct {
	TenantID   id.ID
	ID         id.ID
	Kind       Kind
	Items      []Rule
	CreatedAt  time.Time
	ModifiedAt time.Time
}

// Rule maps one attribute of a user to attributes of an account, or the reverse.
type Rule struct {
	Name              *string  `json:"name"`       // nil: any name of the NameFormat
	NameFormat        *string  `json:"nameFormat"` // of an AttributeStatement; nil: any
	AccountAttributes []string `json:"accountAttributes"`
}

// Change is the body that replaces all rules.
type Change struct {
	Items field.Nullable[[]NewRule] `json:"items"`
}

// UnmarshalJSON decodes the items of the rules in the body of a provider, and ignores other members
// (docs/interface/directories.md#mapping-rules).
func (in *Change) UnmarshalJSON(data []byte) error {
	var sent map[string]json.RawMessage
	if err := json.Unmarshal(data, &sent); err != nil || sent == nil {
		return apierr.WrongType.Because("must be an object")
	}
	items, ok := sent["items"]
	if !ok {
		return nil
	}
	return json.Unmarshal(items, &in.Items)
}

// NewRule is one rule of a body.
type NewRule struct {
	Name              field.Text `json:"name"`
	NameFormat        field.Text `json:"nameFormat"`
	AccountAttributes field.List `json:"accountAttributes"`
}

// UnmarshalJSON decodes one item.
func (in *NewRule) UnmarshalJSON(data []byte) error {
	type members NewRule
	return field.Nested(data, (*members)(in), nil)
}

// Apply validates the items of a body, if it has items, and replaces the items of the rules.
func (r *Rules) Apply(in Change) error {
	if !in.Items.Present {
		return nil
	}
	items, err := check(r.Kind, in.Items.Or(nil))
	if err != nil {
		return err
	}
	r.Items = items
	return nil
}

func check(kind Kind, in []NewRule) ([]Rule, error) {
	if len(in) > maxRules {
		return nil, apierr.TooLong.Because("items has %d rules; at most %d are allowed", len(in), maxRules)
	}
	rules := make([]Rule, len(in))
	for i, item := range in {
		rule, err := newRule(kind, item)
		if err != nil {
			reason := apierr.From(err)
			return nil, reason.Because("items[%d]: %s", i, reason.Reason)
		}
		rules[i] = rule
	}
	return rules, nil
}

func newRule(kind Kind, in NewRule) (rule Rule, err error) {
	if kind == UserInfo && in.NameFormat.Given() {
		return rule, apierr.UnusedProperty.Because("a rule for user info has no nameFormat")
	}
	for _, source := range []struct {
		name string
		in   field.Text
		to   **string
	}{{"name", in.Name, &rule.Name}, {"nameFormat", in.NameFormat, &rule.NameFormat}} {
		if !source.in.Given() {
			continue
		}
		value, err := field.Verbatim(source.in, source.name, maxSourceName)
		if err != nil {
			return rule, err
		}
		*source.to = &value
	}
	if rule.Name == nil && rule.NameFormat == nil {
		return rule, apierr.Required.Because("name is required; it cannot be null, empty or blank")
	}
	rule.AccountAttributes = in.AccountAttributes.Or(nil)
	switch {
	case len(rule.AccountAttributes) == 0:
		return rule, apierr.Required.Because("accountAttributes is required; it cannot be null or empty")
	case len(rule.AccountAttributes) > maxTargets:
		return rule, apierr.TooLong.Because("accountAttributes has %d entries; at most %d are allowed",
			len(rule.AccountAttributes), maxTargets)
	}
	for _, target := range rule.AccountAttributes {
		if !isTarget(target) {
			return rule, apierr.Invalid.Because(
				"accountAttributes holds %q; it can hold email, username, givenName, middleName, surname and "+
					"customData.<key>", target)
		}
	}
	return rule, nil
}

// customDataTarget matches a path of customData keys (docs/interface/custom-data.md#restrictions).
var customDataTarget = regexp.MustCompile(`^customData(\.[0-9A-Za-z_][0-9A-Za-z_-]{0,254})+$`)

// isTarget reports whether a rule may name an attribute of an account.
func isTarget(attribute string) bool {
	if slices.Contains([]string{"email", "username", "givenName", "middleName", "surname"}, attribute) {
		return true
	}
	return len(attribute) <= maxTarget && customDataTarget.MatchString(attribute) &&
		!slices.ContainsFunc(strings.Split(attribute, ".")[1:], func(key string) bool {
			return slices.Contains([]string{"href", "createdAt", "modifiedAt", "meta", "spMeta", "spmeta", "ionmeta",
				"ionMeta"},
				key)
		})
}
