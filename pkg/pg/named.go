package pg

import (
	"context"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
)

// Args are arguments of a statement by their names.
type Args map[string]any

// Named returns the arguments of a statement by their names, which begin with @: each is the value of the
// first of Args that has the name, or of the first struct with the field that RowToStructByName reads from a
// column of that name. A name of the statement without a value is an error; a value without a name is not,
// since a statement may use a part of a resource.
func Named(values ...any) NamedArgs { return values }

// Insert returns the statement that inserts a row of columns, whose values are the arguments of their names.
func Insert(table, columns string) string {
	return `INSERT INTO ` + table + ` (` + strings.Join(Columns(columns), ", ") + `) VALUES (` + Names(columns) + `)`
}

// Names returns the list of the arguments of columns.
func Names(columns string) string { return "@" + strings.Join(Columns(columns), ", @") }

// Set returns the assignments of an UPDATE, which set columns to the arguments of their names.
func Set(columns string) string {
	list := Columns(columns)
	for i, column := range list {
		list[i] = column + " = @" + column
	}
	return strings.Join(list, ", ")
}

// Columns returns the names of a list of columns, without the alias of their table.
func Columns(columns string) []string {
	list := strings.Split(columns, ",")
	for i, column := range list {
		column = strings.TrimSpace(column)
		list[i] = column[strings.IndexByte(column, '.')+1:]
	}
	return list
}

// NamedArgs are the arguments of a statement by their names: see Named.
type NamedArgs []any

// RewriteQuery returns a statement with positions in place of names, and the arguments in their order.
func (n NamedArgs) RewriteQuery(_ context.Context, _ *pgx.Conn, sql string, _ []any) (string, []any, error) {
	return n.rewrite(sql)
}

func (n NamedArgs) rewrite(sql string) (string, []any, error) {
	statement := parseNames(sql)
	args := make([]any, len(statement.names))
	for i, name := range statement.names {
		value, ok := n.value(name, statement.fields[i])
		if !ok {
			return "", nil, fmt.Errorf("the argument @%s has no value in %s", name, sql)
		}
		args[i] = value
	}
	return statement.sql, args, nil
}

// Row returns the values of columns in their order, for CopyFrom.
func (n NamedArgs) Row(columns string) ([]any, error) {
	_, row, err := n.rewrite(Names(columns))
	return row, err
}

func (n NamedArgs) value(name, field string) (any, bool) {
	for _, values := range n {
		if args, ok := values.(Args); ok {
			if value, ok := args[name]; ok {
				return value, true
			}
			continue
		}
		of := reflect.ValueOf(values)
		if index, ok := fieldsOf(of.Type())[field]; ok {
			return of.FieldByIndex(index).Interface(), true
		}
	}
	return nil, false
}

// namedStatement is a statement with positions in place of names.
type namedStatement struct {
	sql    string
	names  []string // by position
	fields []string // the names in normal form
}

var (
	namePattern = regexp.MustCompile(`@[a-z]\w*`)
	statements  sync.Map // namedStatement by its SQL with names: the texts are those of the source code
	fields      sync.Map // index of a field by its name in normal form, by the type of the struct
)

func parseNames(sql string) namedStatement {
	if known, ok := statements.Load(sql); ok {
		return known.(namedStatement)
	}
	positions := map[string]int{}
	var parsed namedStatement
	parsed.sql = namePattern.ReplaceAllStringFunc(sql, func(name string) string {
		if positions[name] == 0 {
			parsed.names, parsed.fields = append(parsed.names, name[1:]), append(parsed.fields, normalName(name[1:]))
			positions[name] = len(parsed.names)
		}
		return "$" + strconv.Itoa(positions[name])
	})
	statements.Store(sql, parsed)
	return parsed
}

func fieldsOf(t reflect.Type) map[string][]int {
	if known, ok := fields.Load(t); ok {
		return known.(map[string][]int)
	}
	of := map[string][]int{}
	for _, field := range reflect.VisibleFields(t) {
		if name, tagged := field.Tag.Lookup("db"); tagged {
			of[normalName(name)] = field.Index
		} else if field.IsExported() {
			of[normalName(field.Name)] = field.Index
		}
	}
	fields.Store(t, of)
	return of
}

// normalName is the form in which names of columns and fields are compared.
func normalName(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "")) }
