package directory

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/directory/store"
)

// Limits of mapping rules, for which the interface names none.
const (
	maxRules      = 100
	maxTargets    = 20   // account attributes of a rule
	maxSourceName = 1000 // characters of name and nameFormat
	maxTarget     = 1000 // characters of an account attribute
)

// RulesChange is the body that replaces mapping rules, all of them.
type RulesChange struct {
	Items field.Of[[]NewMappingRule] `json:"items"`
}

// UnmarshalJSON reads rules inside of a provider.
func (in *RulesChange) UnmarshalJSON(data []byte) error {
	type members RulesChange // without this method
	return field.Nested(data, (*members)(in), satellite{})
}

// NewMappingRule is one rule of a body.
type NewMappingRule struct {
	Name              field.Text `json:"name"`
	NameFormat        field.Text `json:"nameFormat"`
	AccountAttributes field.List `json:"accountAttributes"`
}

// UnmarshalJSON reads one of the items.
func (in *NewMappingRule) UnmarshalJSON(data []byte) error {
	type members NewMappingRule
	return field.Nested(data, (*members)(in), nil)
}

// newMappingRules makes the rules of a new directory, without storing them.
func newMappingRules(p store.Provider, kind store.RuleKind, in RulesChange) (*store.MappingRules, error) {
	rules := store.MappingRules{
		TenantID: p.TenantID, ID: id.New(p.CreatedAt), DirectoryID: p.DirectoryID, Kind: kind, CreatedAt: p.CreatedAt, ModifiedAt: p.CreatedAt,
	}
	var err error
	rules.Items, err = mappingRules(kind, in.Items.Or(nil))
	return &rules, err
}

// MappingRules gives the rules of a kind by their id, or apierr.NotFound.
func (s *Service) MappingRules(kind store.RuleKind) func(context.Context, id.Ref) (store.MappingRules, error) {
	return func(ctx context.Context, at id.Ref) (store.MappingRules, error) {
		return s.store.MappingRules(ctx, kind, at.Tenant, at.ID)
	}
}

// UpdateMappingRules replaces the items of rules of a kind.
func (s *Service) UpdateMappingRules(kind store.RuleKind) func(context.Context, id.Ref, RulesChange) (store.MappingRules, error) {
	return func(ctx context.Context, at id.Ref, in RulesChange) (rules store.MappingRules, err error) {
		err = s.tx(ctx, func(tx *store.Tx) error {
			if rules, err = tx.LockMappingRules(ctx, kind, at.Tenant, at.ID); err != nil {
				return err
			}
			if in.Items.Present {
				if rules.Items, err = mappingRules(kind, in.Items.Or(nil)); err != nil {
					return err
				}
			}
			rules.ModifiedAt = s.now()
			return tx.UpdateMappingRules(ctx, rules)
		})
		return rules, err
	}
}

// mappingRules checks the items of a body (resolutions, sections 4.7 and 4.8).
func mappingRules(kind store.RuleKind, in []NewMappingRule) ([]store.MappingRule, error) {
	if len(in) > maxRules {
		return nil, apierr.TooLong.Because("items has %d rules; at most %d are allowed", len(in), maxRules)
	}
	rules := make([]store.MappingRule, len(in))
	for i, item := range in {
		rule, err := mappingRule(kind, item)
		if err != nil {
			reason := apierr.From(err)
			return nil, reason.Because("items[%d]: %s", i, reason.Reason)
		}
		rules[i] = rule
	}
	return rules, nil
}

func mappingRule(kind store.RuleKind, in NewMappingRule) (rule store.MappingRule, err error) {
	if kind == store.UserInfo && in.NameFormat.Given() {
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
		value, err := verbatim(source.in, source.name, maxSourceName)
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
		return rule, apierr.TooLong.Because("accountAttributes has %d entries; at most %d are allowed", len(rule.AccountAttributes), maxTargets)
	}
	for _, target := range rule.AccountAttributes {
		if !isTarget(target) {
			return rule, apierr.Invalid.Because("accountAttributes holds %q; it can hold email, username, givenName, middleName, surname and customData.<key>", target)
		}
	}
	return rule, nil
}

// customDataTarget is a path of keys that customData can have (section 1.2).
var customDataTarget = regexp.MustCompile(`^customData(\.[0-9A-Za-z_][0-9A-Za-z_-]{0,254})+$`)

// isTarget reports whether a rule may write to an attribute of an account.
func isTarget(attribute string) bool {
	if slices.Contains([]string{"email", "username", "givenName", "middleName", "surname"}, attribute) {
		return true
	}
	return len(attribute) <= maxTarget && customDataTarget.MatchString(attribute) &&
		!slices.ContainsFunc(strings.Split(attribute, ".")[1:], func(key string) bool {
			return slices.Contains([]string{"href", "createdAt", "modifiedAt", "meta", "spMeta", "spmeta", "ionmeta", "ionMeta"}, key)
		})
}
