package listsql

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/pg"
)

// Parts is a collection that may have millions of rows: rows of one table in disjoint parts, such as
// the accounts of several directories.
//
// A page without a search is read from the first rows of each part in the order of an index, and its
// size from counts that the store maintains, so that the time does not depend on the number of rows.
// A search reads all rows that match, because the size counts them: its time depends on the number
// of matches.
type Parts struct {
	Spec    list.Spec
	Columns string // columns of the resource: "a.id, a.username"
	Table   string // "accounts a"
	Key     string // the id, which breaks ties of the sort order: "a.id"
	Tenant  string // condition that, with the key, finds the row of an id: "a.tenant_id = $1"
	Parts   []Part
	Args    []any

	from  string // FROM of the rows of a part, up to its condition; empty: the table
	found int    // number of rows that match the query
}

// Part is one or more of the disjoint parts.
type Part struct {
	Each  string // a row for each part, or empty for one: "unnest($2::uuid[]) AS part (id)"
	Where string // condition of a row of the part: "a.tenant_id = $1 AND a.directory_id = part.id"
	// Size is a query for the maintained count of the rows, to which conditions can be
	// appended; empty: the rows are counted by count(*).
	Size string
	// Rows is a query for the number of all rows that reads less than their table: for a query
	// without a filter.
	Rows string
}

// SelectParts returns a page of the collection.
func SelectParts[T any](ctx context.Context, db pg.Querier, c Parts, query list.Query) (list.Page[T], error) {
	page := list.NewPage[T](query)
	if len(c.Parts) == 0 {
		return page, nil
	}
	var err error
	if page.Size, err = c.count(ctx, db, query); err != nil {
		return page, err
	}
	if respaced, differs := query.Respaced(); page.Size == 0 && differs {
		return SelectParts[T](ctx, db, c, respaced)
	}
	if query.Offset >= page.Size {
		return page, nil
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
	return pg.Value[int](ctx, db, b.size(c, query), b.customPlanArgs()...)
}

func selectItems[T any](ctx context.Context, db pg.Querier, c Parts, query list.Query) ([]T, error) {
	if a, _, _ := c.Spec.Find(firstOrder(query)); a.Kind == list.Custom &&
		(!isSearch(query, c.Spec) || c.found > manyMatches) {
		return selectByValue[T](ctx, db, c, query)
	}
	return selectSorted[T](ctx, db, c, query)
}

// selectSorted returns the items of a page, sorted by first and then by the order of the query.
func selectSorted[T any](ctx context.Context, db pg.Querier, c Parts, query list.Query, first ...sort) ([]T, error) {
	b := builder{spec: c.Spec, args: c.Args}
	return pg.All[T](ctx, db, b.page(c, query, append(first, b.sorts(query)...)), b.customPlanArgs()...)
}

// selectByValue returns the items of a page that is sorted by a value of custom data first: the rows
// that have the value, in the order of its index, and then the other rows, which are read only if
// the page needs them.
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

// firstOrder returns the first attribute of the sort order, or "".
func firstOrder(q list.Query) string {
	if len(q.Order) == 0 {
		return ""
	}
	return q.Order[0].Attribute
}

// splitByCustomData returns the rows that have a value of custom data, and the rows that do not.
func (c Parts) splitByCustomData(attribute string) (having, lacking Parts) {
	a, path, _ := c.Spec.Find(attribute)
	c.Args = append(slices.Clip(c.Args), path)
	own := a.Custom.From + " AND v." + a.Custom.Key + " = " + a.Custom.Owner +
		" AND v.path = " + c.Last() + " AND NOT v.element"
	c.Parts = slices.Clone(c.Parts)
	for i := range c.Parts {
		c.Parts[i].Size, c.Parts[i].Rows = "", ""
	}
	having, lacking = c, c
	having.from = c.Table + ", " + own + " AND "
	lacking.from = c.Table + " WHERE NOT EXISTS (SELECT 1 FROM " + own + ") AND "
	return having, lacking
}

// customPlanArgs returns the arguments of a statement with a custom plan, for their values
// (pg.CustomPlan): the size of a part and the number of matches decide which index is best, and
// a generic plan may scan all of a large part.
func (b *builder) customPlanArgs() []any { return append([]any{pg.CustomPlan}, b.args...) }

// size returns the query for the number of rows of all parts: by maintained counts if they answer the
// query, else by count(*). It has only the conditions that a part needs, because PostgreSQL refuses
// arguments that the statement does not use.
func (b *builder) size(c Parts, query list.Query) string {
	isMaintained := func(part Part) bool { return part.Size != "" && isCounted(query, b.spec) }
	isWhole := func(part Part) bool { return part.Rows != "" && query.Q == "" && len(query.Filters) == 0 }
	counted, where := "", ""
	if slices.ContainsFunc(c.Parts, isMaintained) {
		counted = b.counted(query)
	}
	if slices.ContainsFunc(c.Parts, func(part Part) bool { return !isMaintained(part) && !isWhole(part) }) {
		where = b.where(query)
	}
	var sums []string
	for _, part := range c.Parts {
		switch {
		case isMaintained(part):
			sums = append(sums, part.Size+counted)
		case isWhole(part):
			sums = append(sums, part.Rows)
		default:
			sums = append(sums, "SELECT coalesce(sum(n), 0) FROM "+part.each("SELECT count(*) AS n"+c.rows(part,
				where)))
		}
	}
	return "SELECT ((" + strings.Join(sums, ") + (") + "))::bigint"
}

// isCounted reports whether maintained counts answer a query: it has no search, and filters only
// by attributes by which the counts are grouped.
func isCounted(q list.Query, spec list.Spec) bool {
	return q.Q == "" && !slices.ContainsFunc(q.Filters, func(f list.Filter) bool {
		a, _, _ := spec.Find(f.Attribute)
		return a.Counted == ""
	})
}

// counted returns the conditions of a query on the maintained counts.
func (b *builder) counted(query list.Query) string {
	var condition strings.Builder
	for _, f := range query.Filters {
		a, _, _ := b.spec.Find(f.Attribute)
		condition.WriteString(" AND " + a.Counted + " = " + b.arg(f.Text))
	}
	return condition.String()
}

// manyMatches is the number of matches from which a scan of the sort index finds a page of them soon.
const manyMatches = 10_000

// page returns the query that finds the ids of the page by an index, and then reads their rows.
func (b *builder) page(c Parts, query list.Query, sorts []sort) string {
	where := b.where(query) + b.after(query)
	chosen := "SELECT " + c.Key + " AS id"
	inner, outer := make([]sort, len(sorts)), make([]sort, len(sorts))
	for i, s := range sorts {
		chosen += fmt.Sprintf(", %s AS sort_%d", s.sql, i)
		inner[i], outer[i] = s, sort{fmt.Sprintf("page.sort_%d", i), s.direction}
	}
	// A search first finds all matches and then sorts them: OFFSET 0 is an optimization fence.
	// Otherwise the planner may scan the sort index for the few matches, and read all rows. With
	// many matches the scan of the sort index is faster.
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

// rows returns the FROM and WHERE of the rows of a part.
func (c Parts) rows(part Part, where string) string {
	if c.from != "" {
		return " FROM " + c.from + part.Where + where
	}
	return " FROM " + c.Table + " WHERE " + part.Where + where
}

// each returns a query that runs query for each of the parts.
func (p Part) each(query string) string {
	if p.Each == "" {
		return "(" + query + ") found"
	}
	return p.Each + " CROSS JOIN LATERAL (" + query + ") found"
}

// isSearch reports whether a query filters by text or custom data. A filter by status or time leaves so
// many rows that a scan of the sort index is faster.
func isSearch(q list.Query, spec list.Spec) bool {
	for _, f := range q.Filters {
		if a, _, _ := spec.Find(f.Attribute); a.Kind == list.Text || a.Kind == list.Custom {
			return true
		}
	}
	return q.Q != ""
}

// Last returns the placeholder of the last argument in SQL, such as $3.
func (c Parts) Last() string { return fmt.Sprintf("$%d", len(c.Args)) }
