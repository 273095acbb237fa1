// Package listsql makes and runs the SQL of a list.Query: filters, search, sort order and pagination.
// The SQL has only the columns of a list.Spec; what a client sends is always an argument ($1), so
// that SQL injection is not possible.
package listsql

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/pg"
)

// Select returns a page of a collection. columns and from are SQL of the store: from has the tables
// and the condition of the collection ("FROM groups g WHERE g.tenant_id = $1 AND …"), args are its
// arguments, and key is the id that breaks ties of the sort order. SelectParts is for collections
// that may have millions of resources.
func Select[T any](ctx context.Context, db pg.Querier, spec list.Spec, query list.Query, columns, from, key string,
	args ...any) (list.Page[T], error) {
	page := list.NewPage[T](query)
	b := builder{spec: spec, args: args}
	where := b.where(query)
	size, err := pg.Value[int](ctx, db, "SELECT count(*) "+from+where, b.args...)
	if err != nil {
		return page, err
	}
	if respaced, differs := query.Respaced(); size == 0 && differs {
		return Select[T](ctx, db, spec, respaced, columns, from, key, args...)
	}
	page.Size = size
	if query.Offset >= size {
		return page, nil
	}
	sql := "SELECT " + columns + " " + from + where + b.after(query) + orderBy(b.sorts(query), key) +
		" LIMIT " + b.arg(query.Limit) + " OFFSET " + b.arg(query.Offset)
	items, err := pg.All[T](ctx, db, sql, b.args...)
	if err == nil && items != nil {
		page.Items = items
	}
	return page, err
}

// after returns the condition that a resource comes after the item of the query.
func (b *builder) after(query list.Query) string {
	if query.After.IsZero() {
		return ""
	}
	return " AND " + b.spec[list.AfterKey].Column + " > " + b.arg(query.After)
}

type builder struct {
	spec list.Spec
	args []any
}

func (b *builder) arg(value any) string {
	b.args = append(b.args, value)
	return fmt.Sprintf("$%d", len(b.args))
}

// where returns the conditions of a query, each after an AND.
func (b *builder) where(query list.Query) string {
	var sql strings.Builder
	for _, f := range query.Filters {
		sql.WriteString(" AND " + b.filter(f))
	}
	if query.Q != "" {
		sql.WriteString(" AND " + b.anyTextContains(query.Q))
	}
	return sql.String()
}

// anyTextContains returns the condition of the query q=: any text attribute contains the text (full
// text search, case-insensitive like ILIKE and without regard to accents, by LIKE on the normal form of
// field.FoldForSearch). Collections without a column of that form are small: there PostgreSQL removes
// the accents of each row. Without text attributes the condition is false.
func (b *builder) anyTextContains(text string) string {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(b.spec)) {
		a := b.spec[name]
		if a.Kind != list.Text || a.NoFind || (a.Column == "" && a.Search == "") {
			continue
		}
		if a.Search != "" { // the column has all text attributes
			return a.Search + b.searchLike(text)
		}
		texts = append(texts, "regexp_replace(normalize("+folded(a)+", NFKD), '["+accents+"]', '', 'g')")
	}
	if len(texts) == 0 {
		return "false"
	}
	like := " LIKE normalize(" + b.arg("%"+escape(field.FoldForSearch(text))+"%") + "::text, NFKD)"
	return "(" + strings.Join(texts, like+" OR ") + like + ")"
}

// accents is the range of a regular expression of the accents that field.FoldForSearch removes.
const accents = `\u0300-\u036F\u1AB0-\u1AFF\u1DC0-\u1DFF\u20D0-\u20FF`

// searchLike returns the condition that the column Search contains a text, which its trigram index
// finds.
func (b *builder) searchLike(text string) string {
	return " LIKE " + b.arg("%"+escape(field.FoldForSearch(text))+"%")
}

func (b *builder) filter(f list.Filter) string {
	a, path, _ := b.spec.Find(f.Attribute)
	switch a.Kind {
	case list.Enum:
		return a.Column + " = " + b.arg(f.Text)
	case list.Integer:
		return a.Column + " = " + b.arg(f.Text) + "::text::bigint"
	case list.Time:
		return "(" + b.timeRange(a.Column, f) + ")"
	case list.Custom:
		return b.custom(*a.Custom, path, f)
	}
	if a.Login {
		f.Text = field.FoldLogin(f.Text)
	}
	condition := folded(a) + b.match(f)
	// The trigram index of Search supports a wildcard at the start; a B-tree does not.
	if a.Search != "" && (f.Match == list.Suffix || f.Match == list.Contains) {
		condition = a.Search + b.searchLike(f.Text) + " AND " + condition
	}
	return condition
}

// match returns the comparison of a folded text.
func (b *builder) match(f list.Filter) string {
	folded := escape(field.Fold(f.Text))
	if folded == "" {
		return " <> ''" // the filter is * alone: any value
	}
	switch f.Match {
	case list.Prefix:
		return " LIKE " + b.arg(folded+"%")
	case list.Suffix:
		return " LIKE " + b.arg("%"+folded)
	case list.Contains:
		return " LIKE " + b.arg("%"+folded+"%")
	}
	return " = " + b.arg(field.Fold(f.Text))
}

// timeRange returns the condition that a column is in the period of a filter.
func (b *builder) timeRange(column string, f list.Filter) string {
	conditions := []string{}
	if !f.From.IsZero() {
		conditions = append(conditions, column+" >= "+b.arg(f.From))
	}
	if !f.Until.IsZero() {
		conditions = append(conditions, column+" < "+b.arg(f.Until))
	}
	return strings.Join(conditions, " AND ")
}

// custom returns the condition that a resource has a value of custom data. The type of the stored
// value decides how it is compared with a range (docs/interface/search.md#custom-data).
func (b *builder) custom(c list.CustomValues, path string, f list.Filter) string {
	var either []string
	switch {
	case f.Match != list.Range:
		either = append(either, "v.text"+b.match(f))
		if number, ok := list.ParseNumber(f.Text); ok && f.Match == list.Equal {
			either = append(either, "v.number = "+b.arg(number)+"::text::numeric")
		}
	default:
		if during := b.timeRange("v.moment", f); during != "" {
			either = append(either, during)
		}
		if within := b.numberRange("v.number", f.Numbers); within != "" {
			either = append(either, within)
		}
	}
	return c.Owner + " IN (SELECT v." + c.Key + " FROM " + c.From + " AND v.path = " + b.arg(path) + " AND ((" +
		strings.Join(either, ") OR (") + ")))"
}

// numberRange returns the condition that a column is in a range of numbers.
func (b *builder) numberRange(column string, r list.NumberRange) string {
	conditions := []string{}
	if r.Least != "" {
		conditions = append(conditions, column+choose(r.Above, " > ", " >= ")+b.arg(r.Least)+"::text::numeric")
	}
	if r.Most != "" {
		conditions = append(conditions, column+choose(r.Below, " < ", " <= ")+b.arg(r.Most)+"::text::numeric")
	}
	return strings.Join(conditions, " AND ")
}

func choose(first bool, a, b string) string {
	if first {
		return a
	}
	return b
}

// sort is an expression of ORDER BY.
type sort struct{ sql, direction string }

// sorts returns the sort expressions of a query. Resources without the value of custom data are last,
// and texts are behind numbers.
func (b *builder) sorts(query list.Query) []sort {
	var all []sort
	for _, o := range query.Order {
		direction := choose(o.Descending, " DESC", "")
		a, path, _ := b.spec.Find(o.Attribute)
		if a.Kind != list.Custom {
			all = append(all, sort{sorted(a), direction})
			continue
		}
		value := " FROM " + a.Custom.From + " AND v." + a.Custom.Key + " = " + a.Custom.Owner +
			" AND v.path = " + b.arg(path) + " AND NOT v.element)"
		all = append(all, sort{"(SELECT v.text" + value + " IS NULL", ""},
			sort{"(SELECT v.number" + value, direction}, sort{"(SELECT v.text" + value, direction})
	}
	return all
}

// orderBy returns the ORDER BY of the expressions and then of the id, which is unique and grows with
// the time of creation. The id is sorted in the direction of the last expression, so that an index
// on both can be scanned in either direction.
func orderBy(sorts []sort, key string) string {
	var parts []string
	direction := ""
	for _, s := range sorts {
		parts = append(parts, s.sql+s.direction)
		direction = s.direction
	}
	return " ORDER BY " + strings.Join(append(parts, key+direction), ", ")
}

// folded returns the SQL of the normal form of an attribute.
func folded(a list.Attribute) string {
	if a.Folded != "" {
		return a.Folded
	}
	return "lower(" + a.Column + ")"
}

func sorted(a list.Attribute) string {
	if a.Kind == list.Text {
		return folded(a)
	}
	return a.Column
}

// escape escapes the wildcards of LIKE in a text.
func escape(text string) string {
	return strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(text)
}
