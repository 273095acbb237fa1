package listsql

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/doorward/doorward/pkg/list"
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
	Spec    list.Spec
	Columns string // of the resource: "a.id, a.username"
	Table   string // "accounts a"
	Key     string // the id, which breaks ties: "a.id"
	Tenant  string // condition that leads from an id to its row, beside the key: "a.tenant_id = $1"
	Parts   []Part
	Args    []any

	from  string // FROM of a part's rows, up to its condition; empty: the table
	found int    // how many rows the query finds
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
func SelectParts[T any](ctx context.Context, db pg.Querier, c Parts, query list.Query) (list.Page[T], error) {
	page := list.NewPage[T](query)
	if len(c.Parts) == 0 {
		return page, nil
	}
	var err error
	if page.Size, err = c.count(ctx, db, query); err != nil || query.Offset >= page.Size {
		return page, err
	}
	c.found = page.Size
	items, err := selectItems[T](ctx, db, c, query)
	if err == nil && items != nil {
		page.Items = items
	}
	return page, err
}

// count returns the number of rows of all parts.
func (c Parts) count(ctx context.Context, db pg.Querier, query list.Query) (int, error) {
	b := builder{spec: c.Spec, args: c.Args}
	return pg.Value[int](ctx, db, b.size(c, query), b.argsPlannedEach()...)
}

func selectItems[T any](ctx context.Context, db pg.Querier, c Parts, query list.Query) ([]T, error) {
	if a, _, _ := c.Spec.Find(firstOrder(query)); a.Kind == list.Custom && (!isSearch(query, c.Spec) || c.found > manyMatches) {
		return selectByValue[T](ctx, db, c, query)
	}
	return selectSorted[T](ctx, db, c, query)
}

// selectSorted reads the items of a page in the order of first and then in that
// of the query.
func selectSorted[T any](ctx context.Context, db pg.Querier, c Parts, query list.Query, first ...sort) ([]T, error) {
	b := builder{spec: c.Spec, args: c.Args}
	return pg.All[T](ctx, db, b.page(c, query, append(first, b.sorts(query)...)), b.argsPlannedEach()...)
}

// selectByValue reads the items of a page whose order begins with a value of
// custom data: first the rows that have it, in the order of its index, and then
// the others, which are looked at only where the page reaches them.
func selectByValue[T any](ctx context.Context, db pg.Querier, c Parts, query list.Query) ([]T, error) {
	having, lacking := c.splitByCustomData(firstOrder(query))
	direction := choose(query.Order[0].Descending, " DESC", "")
	query.Order = query.Order[1:]
	items, err := selectSorted[T](ctx, db, having, query, sort{"v.number", direction}, sort{"v.text", direction})
	if err != nil || len(items) == query.Limit {
		return items, err
	}
	before := query.Offset + len(items)
	if len(items) == 0 {
		if before, err = having.count(ctx, db, query); err != nil {
			return nil, err
		}
	}
	query.Offset, query.Limit = max(0, query.Offset-before), query.Limit-len(items)
	others, err := selectSorted[T](ctx, db, lacking, query)
	return append(items, others...), err
}

// first is the attribute that a query sorts by before all others, if any.
func firstOrder(q list.Query) string {
	if len(q.Order) == 0 {
		return ""
	}
	return q.Order[0].Attribute
}

// divided returns the rows that have a value of custom data and those that do not.
func (c Parts) splitByCustomData(attribute string) (having, lacking Parts) {
	a, path, _ := c.Spec.Find(attribute)
	c.Args = append(slices.Clip(c.Args), path)
	own := a.Custom.From + " AND v." + a.Custom.Key + " = " + a.Custom.Owner + " AND v.path = " + c.Last() + " AND NOT v.element"
	c.Parts = slices.Clone(c.Parts)
	for i := range c.Parts {
		c.Parts[i].Size = ""
	}
	having, lacking = c, c
	having.from = c.Table + ", " + own + " AND "
	lacking.from = c.Table + " WHERE NOT EXISTS (SELECT FROM " + own + ") AND "
	return having, lacking
}

// planned returns the arguments of a statement, which is planned for their values:
// how many rows a part has and a search finds decides which index serves, and a
// plan for parts of a common size reads all of a large one.
func (b *builder) argsPlannedEach() []any { return append([]any{pg.PlanEach}, b.args...) }

// size counts the rows of all parts: by the counts that are maintained where they
// answer the query, one by one otherwise. Only what a part needs is written, since
// the database refuses an argument that no part of the statement names.
func (b *builder) size(c Parts, query list.Query) string {
	isMaintained := func(part Part) bool { return part.Size != "" && isCounted(query, b.spec) }
	counted, where := "", ""
	if slices.ContainsFunc(c.Parts, isMaintained) {
		counted = b.counted(query)
	}
	if slices.ContainsFunc(c.Parts, func(part Part) bool { return !isMaintained(part) }) {
		where = b.where(query)
	}
	var sums []string
	for _, part := range c.Parts {
		if isMaintained(part) {
			sums = append(sums, part.Size+counted)
			continue
		}
		sums = append(sums, "SELECT coalesce(sum(n), 0) FROM "+part.each("SELECT count(*) AS n"+c.rows(part, where)))
	}
	return "SELECT ((" + strings.Join(sums, ") + (") + "))::bigint"
}

// isCounted reports whether maintained counts answer a query: it searches
// nothing, or only by attributes that they are kept by.
func isCounted(q list.Query, spec list.Spec) bool {
	return q.Q == "" && !slices.ContainsFunc(q.Filters, func(f list.Filter) bool {
		a, _, _ := spec.Find(f.Attribute)
		return a.Counted == ""
	})
}

// counted is the condition on maintained counts that a query means.
func (b *builder) counted(query list.Query) string {
	var condition strings.Builder
	for _, f := range query.Filters {
		a, _, _ := b.spec.Find(f.Attribute)
		condition.WriteString(" AND " + a.Counted + " = " + b.arg(f.Text))
	}
	return condition.String()
}

// frequent is how many rows a search finds that meets them everywhere.
const manyMatches = 10_000

// page finds the ids of the page by index alone and then reads their rows.
func (b *builder) page(c Parts, query list.Query, sorts []sort) string {
	where := b.where(query)
	chosen := "SELECT " + c.Key + " AS id"
	inner, outer := make([]sort, len(sorts)), make([]sort, len(sorts))
	for i, s := range sorts {
		chosen += fmt.Sprintf(", %s AS sort_%d", s.sql, i)
		inner[i], outer[i] = s, sort{fmt.Sprintf("page.sort_%d", i), s.direction}
	}
	// A search reads what it finds before it sorts. Otherwise the planner may
	// hope to meet enough of it on the way along an ordered index, and read all;
	// but where there is much to meet, it may.
	tail := " OFFSET 0"
	if !isSearch(query, b.spec) || c.found > manyMatches {
		tail = orderBy(inner, c.Key) + " LIMIT " + b.arg(query.Offset+query.Limit)
	}
	var parts []string
	for _, part := range c.Parts {
		parts = append(parts, "SELECT found.* FROM "+part.each(chosen+c.rows(part, where)+tail))
	}
	order := orderBy(outer, "page.id")
	return "SELECT " + c.Columns + " FROM (SELECT * FROM (" + strings.Join(parts, " UNION ALL ") + ") page" + order +
		" LIMIT " + b.arg(query.Limit) + " OFFSET " + b.arg(query.Offset) + ") page JOIN " + c.Table +
		" ON " + c.Tenant + " AND " + c.Key + " = page.id" + order
}

// rows is where the rows of a part come from.
func (c Parts) rows(part Part, where string) string {
	if c.from != "" {
		return " FROM " + c.from + part.Where + where
	}
	return " FROM " + c.Table + " WHERE " + part.Where + where
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
func isSearch(q list.Query, spec list.Spec) bool {
	for _, f := range q.Filters {
		if a, _, _ := spec.Find(f.Attribute); a.Kind == list.Text || a.Kind == list.Custom {
			return true
		}
	}
	return q.Q != ""
}

// Last is how SQL names the last of the arguments.
func (c Parts) Last() string { return fmt.Sprintf("$%d", len(c.Args)) }
