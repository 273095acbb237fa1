package list

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/pg"
)

// Select reads a page. columns and from are SQL of the store: from names the
// tables and the condition that every resource of the collection meets
// ("FROM groups g WHERE g.tenant_id = $1 AND …"), args its parameters, and key
// the id that breaks ties.
func Select[T any](ctx context.Context, db pg.Querier, spec Spec, query Query, columns, from, key string, args ...any) (Page[T], error) {
	page := Page[T]{Offset: query.Offset, Limit: query.Limit, Items: []T{}}
	b := builder{spec: spec, args: args}
	where := b.where(query)
	size, err := pg.Value[int](ctx, db, "SELECT count(*) "+from+where, b.args...)
	if err != nil {
		return page, err
	}
	page.Size = size
	if query.Offset >= size {
		return page, nil
	}
	sql := "SELECT " + columns + " " + from + where + b.order(query.Order, key) + " LIMIT " + b.arg(query.Limit) + " OFFSET " + b.arg(query.Offset)
	items, err := pg.All[T](ctx, db, sql, b.args...)
	if err == nil && items != nil {
		page.Items = items
	}
	return page, err
}

type builder struct {
	spec Spec
	args []any
}

func (b *builder) arg(value any) string {
	b.args = append(b.args, value)
	return fmt.Sprintf("$%d", len(b.args))
}

func (b *builder) where(query Query) string {
	var sql strings.Builder
	for _, f := range query.Filters {
		sql.WriteString(" AND " + b.filter(f))
	}
	if query.Q != "" {
		like := b.arg("%" + escape(field.Fold(query.Q)) + "%")
		var matches []string
		for _, name := range b.names() {
			if a := b.spec[name]; a.Kind == Text && !a.NoFind {
				matches = append(matches, a.folded()+" LIKE "+like)
			}
		}
		if len(matches) > 0 {
			sql.WriteString(" AND (" + strings.Join(matches, " OR ") + ")")
		}
	}
	return sql.String()
}

func (b *builder) filter(f Filter) string {
	a := b.spec[f.Attribute]
	switch a.Kind {
	case Enum:
		return a.Column + " = " + b.arg(f.Text)
	case Time:
		condition := "true"
		if !f.From.IsZero() {
			condition = a.Column + " >= " + b.arg(f.From)
		}
		if !f.Until.IsZero() {
			condition += " AND " + a.Column + " < " + b.arg(f.Until)
		}
		return "(" + condition + ")"
	}
	folded := field.Fold(f.Text)
	switch f.Match {
	case Prefix:
		return a.folded() + " LIKE " + b.arg(escape(folded)+"%")
	case Suffix:
		return a.folded() + " LIKE " + b.arg("%"+escape(folded))
	case Contains:
		return a.folded() + " LIKE " + b.arg("%"+escape(folded)+"%")
	}
	return a.folded() + " = " + b.arg(folded)
}

// order sorts by the query's attributes and then by creation: ids grow with
// time, and they are unique.
func (b *builder) order(order []Order, key string) string {
	var parts []string
	for _, o := range order {
		part := b.spec[o.Attribute].sorted()
		if o.Descending {
			part += " DESC NULLS LAST"
		}
		parts = append(parts, part)
	}
	return " ORDER BY " + strings.Join(append(parts, key), ", ")
}

func (b *builder) names() []string {
	names := make([]string, 0, len(b.spec))
	for name := range b.spec {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// folded is the SQL of the attribute's normal form.
func (a Attribute) folded() string {
	if a.Folded != "" {
		return a.Folded
	}
	return "lower(" + a.Column + ")"
}

func (a Attribute) sorted() string {
	if a.Kind == Text {
		return a.folded()
	}
	return a.Column
}

// escape makes text literal in a LIKE pattern.
func escape(text string) string {
	return strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(text)
}
