// Package list parses the query of a collection (pagination by offset and limit, sort order orderBy,
// search q, filters: docs/interface/search.md). A Spec is the allow-list of the attributes of one kind
// of resource. Package listsql makes and runs the SQL.
package list

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
)

// The page size of pagination: DefaultLimit applies if a client sends no limit, MaxLimit is the
// maximum.
const (
	DefaultLimit = 25
	MaxLimit     = 100
)

// Kind says how an attribute compares.
type Kind int

// The kinds of attribute.
const (
	Text    Kind = iota // case-insensitive; * at either end
	Enum                // whole value, any case
	Integer             // whole number
	Time                // instant, or range
	Custom              // any value of custom data
	Cursor              // the id, for the parameter after
)

// AfterKey is the name in a Spec of the id by which a page begins after an item: After. Collections
// that may have millions of items have it (keyset pagination).
const AfterKey = "after"

// After is the attribute AfterKey of a collection; key is the SQL expression of the id, whose order is
// that of the collection.
func After(key string) Attribute {
	return Attribute{Column: key, Kind: Cursor, NoSort: true, NoFind: true}
}

// The limits of one query.
const (
	maxOffset = 1<<31 - 1
	maxCustom = 8 // filters and sorts by custom data
)

// Attribute is an attribute by which a client may search or sort.
type Attribute struct {
	Column  string   // SQL expression
	Folded  string   // SQL expression of its normal form (field.Fold), if it has a column
	Kind    Kind     // how it compares
	Values  []string // allowed values of an Enum
	Search  string   // SQL column with all text attributes (field.FoldForSearch) and a trigram index
	Login   bool     // its values are login names, whose normal form is that of field.LoginName
	Phone   bool     // its values are telephone numbers, which are read by field.PhoneNumber
	Counted string   // SQL column by which the maintained counts of listsql.Parts are grouped
	Custom  *CustomValues
	NoSort  bool
	NoFind  bool
}

// CustomValues names the table of the searchable values of custom data: a table v with the columns
// path, text (folded), number, moment, and element, which is true for a value in an array. The owner
// of a value is the resource that has the custom data.
type CustomValues struct {
	From  string // with a condition: "account_values v WHERE v.tenant_id = $1"
	Key   string // column with the id of the owner: "account_id"
	Owner string // SQL of the owner's id: "a.id"
}

// Spec is the allow-list of the attributes of one kind of resource, by their JSON names. The
// name "customData.*" stands for every value of its custom data.
type Spec map[string]Attribute

const (
	customPrefix = "customData."
	anyCustom    = "customData.*"
)

// Find returns an attribute, and for an attribute of custom data its path.
func (s Spec) Find(name string) (a Attribute, path string, known bool) {
	if rest, isCustom := strings.CutPrefix(name, customPrefix); isCustom {
		a, known = s[anyCustom]
		return a, rest, known && isPath(rest)
	}
	a, known = s[name]
	return a, "", known
}

func (a Attribute) sortable() bool   { return !a.NoSort }
func (a Attribute) searchable() bool { return !a.NoFind }

// names returns the names of the usable attributes for an error message: "createdAt, name
// or status".
func (s Spec) names(usable func(Attribute) bool) string {
	var names []string
	for name, attribute := range s {
		if usable(attribute) {
			names = append(names, strings.Replace(name, anyCustom, customPrefix+"<key>", 1))
		}
	}
	if len(names) == 0 {
		return "nothing"
	}
	slices.Sort(names)
	return field.Or(names)
}

// isPath reports whether a text is a path of custom data: keys joined by dots.
func isPath(path string) bool {
	for key := range strings.SplitSeq(path, ".") {
		if key == "" || len(key) > 255 || strings.ContainsFunc(key, func(r rune) bool {
			return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '-')
		}) {
			return false
		}
	}
	return true
}

// Query is a parsed query of a collection.
type Query struct {
	Offset  int      `json:"offset"`
	Limit   int      `json:"limit"`
	Q       string   `json:"q,omitempty"` // substring of any text attribute
	Filters []Filter `json:"filters,omitempty"`
	Order   []Order  `json:"order,omitempty"`
	// After is the id of an item: the page has what follows it in the order of creation. The item need
	// not exist. The size of the page is that of the whole collection.
	After id.ID `json:"after,omitzero"`

	// The times of the parent resource, which are those of the page: see Of.
	CreatedAt  time.Time `json:"createdAt,omitzero"`
	ModifiedAt time.Time `json:"modifiedAt,omitzero"`
}

// WithParentTimes returns the query with the times of the parent resource of the collection (a tenant, a
// directory, an account), which are the times of the page.
func (q Query) WithParentTimes(createdAt, modifiedAt time.Time) Query {
	q.CreatedAt, q.ModifiedAt = createdAt, modifiedAt
	return q
}

// Parent is the parent resource of a collection: a tenant, a directory, an account.
type Parent interface {
	Times() (createdAt, modifiedAt time.Time)
}

// PageOf returns a page of the collection of a parent resource, with the times of the parent. It
// returns the error of read if the parent does not exist.
func PageOf[P Parent, T any](
	ctx context.Context, read func(context.Context, id.Ref) (P, error),
	list func(context.Context, id.Ref, Query) (Page[T], error),
	of id.Ref, query Query,
) (Page[T], error) {
	parent, err := read(ctx, of)
	if err != nil {
		return Page[T]{}, err
	}
	return list(ctx, of, query.WithParentTimes(parent.Times()))
}

// Filter restricts one attribute.
type Filter struct {
	Attribute string `json:"attribute"`
	Match     Match  `json:"match,omitempty"`
	Text      string `json:"text,omitempty"`
	// Spaced is the text with a space for each plus sign of the query. It is searched where nothing
	// has Text: see Respaced.
	Spaced string    `json:"spaced,omitempty"`
	From   time.Time `json:"from,omitzero"`  // inclusive
	Until  time.Time `json:"until,omitzero"` // exclusive

	Numbers NumberRange `json:"numbers,omitzero"`
}

// NumberRange is a range of numbers; an empty text is an open end.
type NumberRange struct {
	Least string `json:"least,omitempty"` // decimal
	Most  string `json:"most,omitempty"`  // decimal
	Above bool   `json:"above,omitempty"` // Least is excluded
	Below bool   `json:"below,omitempty"` // Most is excluded
}

// Match says how a text is matched.
type Match int

// The matches of a text.
const (
	Equal Match = iota
	Prefix
	Suffix
	Contains
	Range // From, Until and Numbers
)

// Order sorts by one attribute.
type Order struct {
	Attribute  string `json:"attribute"`
	Descending bool   `json:"descending,omitempty"`
}

// Page is a page of a collection. Size is the total number of resources that match the query. The
// times are those of the parent resource.
type Page[T any] struct {
	CreatedAt  time.Time `json:"createdAt,omitzero"`
	ModifiedAt time.Time `json:"modifiedAt,omitzero"`
	Offset     int       `json:"offset"`
	Limit      int       `json:"limit"`
	Size       int       `json:"size"`
	Items      []T       `json:"items"`
}

// NewPage returns the page of a query, without items.
func NewPage[T any](q Query) Page[T] {
	return Page[T]{CreatedAt: q.CreatedAt, ModifiedAt: q.ModifiedAt, Offset: q.Offset, Limit: q.Limit, Items: []T{}}
}

// First returns the query of the first page of a collection.
func First() Query { return Query{Limit: DefaultLimit} }

// ignoredParameters are query parameters of other operations, which some clients repeat on the links
// that they follow. They are ignored (docs/interface/search.md#filters).
var ignoredParameters = []string{
	"accountStore", "challenge", "createDirectory", "encryptSecret", "encryptionKeyIterations", "encryptionKeySalt",
	"encryptionKeySize", "passwordFormat", "propertyId", "registrationWorkflowEnabled",
}

// Parse parses the query string of the URL of a collection. A parameter that is repeated with the
// same value counts once.
func Parse(raw string, spec Spec) (Query, error) {
	query := First()
	seen := map[string]string{}
	for pair := range strings.SplitSeq(raw, "&") {
		if pair == "" {
			continue
		}
		rawName, rawValue, hasValue := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(rawName)
		value, err2 := unescapeValue(name, rawValue, spec)
		switch {
		case err != nil || err2 != nil || name == "" || !utf8.ValidString(name) || !utf8.ValidString(value) ||
			strings.ContainsRune(value, 0):
			return Query{}, apierr.MalformedQuery.Because("the query part %q is not of the form name=value", pair)
		case !hasValue:
			return Query{}, apierr.ParameterEmpty.Because("the query parameter %q needs a value", name)
		}
		if former, repeated := seen[name]; repeated && former == value {
			continue
		} else if repeated {
			return Query{}, apierr.ParameterRepeated.Because(
				"the query parameter %q has two values, %q and %q; send one", name,
				former, value)
		}
		seen[name] = value
		if err := query.setParameter(name, value, spec); err != nil {
			return Query{}, err
		}
		if i := len(query.Filters) - 1; i >= 0 && query.Filters[i].Attribute == name &&
			strings.Contains(rawValue, "+") {
			query.Filters[i].setSpaced(rawValue, spec)
		}
	}
	if !query.After.IsZero() && len(query.Order) > 0 {
		return Query{}, apierr.ParameterInvalid.Because("after goes with the order of creation: leave orderBy out")
	}
	return query, query.checkCustomLimit()
}

// unescapeValue decodes the value of a parameter once. A plus sign means a space, but in a login name it
// is first a plus sign: jo+tag@example.com is an email that many clients do not encode.
func unescapeValue(name, raw string, spec Spec) (string, error) {
	if a, _, known := spec.Find(name); known && a.Login {
		raw = strings.ReplaceAll(raw, "+", "%2B")
	}
	return url.QueryUnescape(raw)
}

// setSpaced sets the second reading of a login name with plus signs.
func (f *Filter) setSpaced(raw string, spec Spec) {
	if a, _, _ := spec.Find(f.Attribute); !a.Login {
		return
	}
	if spaced, err := url.QueryUnescape(raw); err == nil {
		f.Spaced, _ = parseWildcards(strings.TrimSpace(spaced))
	}
}

// Respaced returns the query with the plus signs of login names read as spaces, and false if it has
// none. It is to be answered where the query itself finds nothing.
func (q Query) Respaced() (Query, bool) {
	spaced := false
	q.Filters = slices.Clone(q.Filters)
	for i, f := range q.Filters {
		if f.Spaced != "" {
			q.Filters[i].Text, q.Filters[i].Spaced, spaced = f.Spaced, "", true
		}
	}
	return q, spaced
}

// checkCustomLimit returns an error for more than maxCustom filters and sorts by custom data.
func (q Query) checkCustomLimit() error {
	custom := 0
	for _, f := range q.Filters {
		if strings.HasPrefix(f.Attribute, customPrefix) {
			custom++
		}
	}
	for _, o := range q.Order {
		if strings.HasPrefix(o.Attribute, customPrefix) {
			custom++
		}
	}
	if custom > maxCustom {
		return apierr.MalformedQuery.Because("the query names custom data %d times; %d are allowed", custom, maxCustom)
	}
	return nil
}

func (q *Query) setParameter(name, value string, spec Spec) (err error) {
	switch name {
	case "offset":
		q.Offset, err = parseInteger(name, value, 0)
		q.Offset = min(q.Offset, maxOffset)
	case "limit":
		q.Limit, err = parseInteger(name, value, 1)
		q.Limit = min(q.Limit, MaxLimit)
	case "q":
		q.Q = value
	case "orderBy":
		q.Order, err = parseOrder(value, spec)
	case AfterKey:
		q.After, err = parseAfter(value, spec)
	default:
		if _, _, known := spec.Find(name); !known && slices.Contains(ignoredParameters, name) {
			return nil
		}
		var f Filter
		f, err = parseFilter(name, value, spec)
		q.Filters = append(q.Filters, f)
	}
	return err
}

func parseAfter(value string, spec Spec) (id.ID, error) {
	if _, known := spec[AfterKey]; !known {
		return id.ID{}, apierr.QueryUnsupported.Because("the collection cannot be read after an item; use offset")
	}
	after, err := id.Parse(value)
	if err != nil || after.IsZero() {
		return id.ID{}, apierr.ParameterInvalid.Because("after must be the id of an item, the last part of its href")
	}
	return after, nil
}

func parseInteger(name, value string, least int) (int, error) {
	n, err := strconv.Atoi(value)
	if errors.Is(err, strconv.ErrRange) && n > 0 {
		return n, nil // larger than an int: the caller bounds it
	}
	if err != nil || n < least {
		return 0, apierr.ParameterInvalid.Because("%s must be a whole number of at least %d", name, least)
	}
	return n, nil
}

// parseOrder parses the sort order, orderBy: attributes of the Spec that are not NoSort.
func parseOrder(value string, spec Spec) ([]Order, error) {
	var order []Order
	for statement := range strings.SplitSeq(value, ",") {
		words := strings.Fields(statement)
		if len(words) == 0 || len(words) > 2 {
			return nil, apierr.OrderMalformed.Because(
				"orderBy must be a list of <attribute> or <attribute> asc|desc, separated by commas")
		}
		o := Order{Attribute: words[0]}
		if len(words) == 2 {
			o.Descending = strings.EqualFold(words[1], "desc")
			if !o.Descending && !strings.EqualFold(words[1], "asc") {
				return nil, apierr.OrderMalformed.Because("%q is neither asc nor desc", words[1])
			}
		}
		if attribute, _, known := spec.Find(o.Attribute); !known || attribute.NoSort {
			return nil, apierr.OrderUnsupported.Because("the collection cannot be sorted by %q, only by %s",
				o.Attribute, spec.names(Attribute.sortable))
		}
		if !slices.ContainsFunc(order, func(other Order) bool { return other.Attribute == o.Attribute }) {
			order = append(order, o)
		}
	}
	return order, nil
}

func parseFilter(name, value string, spec Spec) (Filter, error) {
	attribute, _, known := spec.Find(name)
	if !known || attribute.NoFind {
		return Filter{}, apierr.QueryUnsupported.Because("the collection cannot be searched by %q, only by %s", name,
			spec.names(Attribute.searchable))
	}
	if value == "" {
		return Filter{}, apierr.ParameterEmpty.Because("the query parameter %q needs a value", name)
	}
	switch {
	case attribute.Login:
		value = strings.TrimSpace(value)
	case attribute.Phone:
		value = field.PhoneNumber(value)
	}
	f := Filter{Attribute: name, Text: value}
	switch attribute.Kind {
	case Custom:
		return customFilter(f)
	case Time:
		var err error
		f.Text = ""
		f.From, f.Until, err = parsePeriod(value)
		if errors.Is(err, apierr.ParameterInvalid) {
			err = apierr.ParameterInvalid.Because(
				"%s query parameter value is invalid or an unexpected type. It must be a datetime or a range: %s",
				name, apierr.From(err).Reason)
		}
		return f, err
	case Enum:
		f.Text = strings.ToUpper(value)
		if !slices.Contains(attribute.Values, f.Text) {
			return Filter{}, apierr.QueryUnsupported.Because("%s must be %s", name, field.Or(attribute.Values))
		}
	case Integer:
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return Filter{}, apierr.ParameterInvalid.Because("%s must be a whole number", name)
		}
		f.Text = strconv.FormatInt(n, 10)
	default:
		f.Text, f.Match = parseWildcards(value)
	}
	return f, nil
}

// parseWildcards removes a wildcard * at either end; a * elsewhere is literal.
func parseWildcards(value string) (string, Match) {
	text, suffix := strings.CutPrefix(value, "*")
	text, prefix := strings.CutSuffix(text, "*")
	switch {
	case prefix && suffix:
		return text, Contains
	case prefix || value == "*":
		return text, Prefix
	case suffix:
		return text, Suffix
	}
	return text, Equal
}
