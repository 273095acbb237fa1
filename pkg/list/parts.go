package list

import (
	"context"
	"fmt"
	"strings"

	"github.com/doorward/doorward/pkg/pg"
)

// Parts is a collection that may hold millions: the rows of one table that lie
// in disjoint parts, such as the accounts of some directories.
//
// A page without a search is read from the head of each part in the order of an
// index, and its size from a count that the store maintains, so that both cost
// the same in a part of a thousand rows as in one of a million. A search reads
// all that it finds, because the size counts it; so it costs what it finds, not
// what the part holds.
type Parts struct {
	Spec    Spec
	Columns string // of the resource: "a.id, a.username"
	Table   string // "accounts a"
	Key     string // the id, which breaks ties: "a.id"
	Tenant  string // condition that leads from an id to its row, beside the key: "a.tenant_id = $1"
	Parts   []Part
	Args    []any
}

// Part is one or more of the disjoint parts.
type Part struct {
	Each  string // a row for each part, or empty for one: "unnest($2::uuid[]) AS part (id)"
	Where string // condition of a row of the part: "a.tenant_id = $1 AND a.directory_id = part.id"
	// Size is a query for the number of rows of all of them without a search,
	// which ends with a condition; empty: they are counted.
	Size string
}

// SelectParts reads a page.
func SelectParts[T any](ctx context.Context, db pg.Querier, c Parts, query Query) (Page[T], error) {
	page := Page[T]{Offset: query.Offset, Limit: query.Limit, Items: []T{}}
	if len(c.Parts) == 0 {
		return page, nil
	}
	size := builder{spec: c.Spec, args: c.Args}
	count, err := pg.Value[int](ctx, db, size.size(c, query), size.planned(query)...)
	if err != nil {
		return page, err
	}
	page.Size = count
	if query.Offset >= count {
		return page, nil
	}
	rows := builder{spec: c.Spec, args: c.Args}
	items, err := pg.All[T](ctx, db, rows.page(c, query), rows.planned(query)...)
	if err == nil && items != nil {
		page.Items = items
	}
	return page, err
}

// planned gives the arguments of a statement. A search is planned for the
// values that it looks for: how many rows they find decides which index serves.
func (b *builder) planned(query Query) []any {
	if len(query.Filters) == 0 && query.Q == "" {
		return b.args
	}
	return append([]any{pg.PlanEach}, b.args...)
}

// size counts the rows of all parts.
func (b *builder) size(c Parts, query Query) string {
	counted, isCounted := b.counted(query)
	where := ""
	if !isCounted {
		where = b.where(query)
	}
	var sums []string
	for _, part := range c.Parts {
		switch {
		case part.Size != "" && isCounted:
			sums = append(sums, part.Size+counted)
		default:
			if isCounted && where == "" {
				where = b.where(query)
			}
			sums = append(sums, "SELECT coalesce(sum(n), 0) FROM "+part.each("SELECT count(*) AS n FROM "+c.Table+" WHERE "+part.Where+where))
		}
	}
	return "SELECT ((" + strings.Join(sums, ") + (") + "))::bigint"
}

// counted gives the condition under which maintained counts answer a query: it
// searches nothing, or only by attributes that they are kept by.
func (b *builder) counted(query Query) (condition string, ok bool) {
	if query.Q != "" {
		return "", false
	}
	for _, f := range query.Filters {
		if a, _, _ := b.spec.find(f.Attribute); a.Counted == "" {
			return "", false
		}
	}
	for _, f := range query.Filters {
		a, _, _ := b.spec.find(f.Attribute)
		condition += " AND " + a.Counted + " = " + b.arg(f.Text)
	}
	return condition, true
}

// page finds the ids of the page by index alone and then reads their rows.
func (b *builder) page(c Parts, query Query) string {
	where, sorts := b.where(query), b.sorts(query)
	chosen := "SELECT " + c.Key + " AS id"
	inner, outer := make([]sort, len(sorts)), make([]sort, len(sorts))
	for i, s := range sorts {
		chosen += fmt.Sprintf(", %s AS sort_%d", s.sql, i)
		inner[i], outer[i] = s, sort{fmt.Sprintf("page.sort_%d", i), s.direction}
	}
	// A search reads what it finds before it sorts. Otherwise the planner may
	// hope to meet enough of it on the way along an ordered index, and read all.
	tail := " OFFSET 0"
	if !query.isSearch(b.spec) {
		tail = orderBy(inner, c.Key) + " LIMIT " + b.arg(query.Offset+query.Limit)
	}
	var parts []string
	for _, part := range c.Parts {
		parts = append(parts, "SELECT found.* FROM "+part.each(chosen+" FROM "+c.Table+" WHERE "+part.Where+where+tail))
	}
	order := orderBy(outer, "page.id")
	return "SELECT " + c.Columns + " FROM (SELECT * FROM (" + strings.Join(parts, " UNION ALL ") + ") page" + order +
		" LIMIT " + b.arg(query.Limit) + " OFFSET " + b.arg(query.Offset) + ") page JOIN " + c.Table +
		" ON " + c.Tenant + " AND " + c.Key + " = page.id" + order
}

// each runs a query for each of the parts.
func (p Part) each(query string) string {
	if p.Each == "" {
		return "(" + query + ") found"
	}
	return p.Each + " CROSS JOIN LATERAL (" + query + ") found"
}

// isSearch reports whether a query looks for text or custom data. A status or a
// time leaves so much that an ordered index is the better way.
func (q Query) isSearch(spec Spec) bool {
	for _, f := range q.Filters {
		if a, _, _ := spec.find(f.Attribute); a.Kind == Text || a.Kind == Custom {
			return true
		}
	}
	return q.Q != ""
}

// Last is how SQL names the last of the arguments.
func (c Parts) Last() string { return fmt.Sprintf("$%d", len(c.Args)) }
