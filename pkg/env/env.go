// Package env reads the configuration of a process from environment variables, in
// place of os.Getenv and os.LookupEnv. A struct declares the variables:
//
//	type Config struct {
//		Listen string `env:"DOORWARD_LISTEN" default:":8080" help:"address to serve on"`
//	}
//
// Every variable can be given as NAME_FILE, naming a file that has the value. All problems are
// reported at once, with what to change; an unknown DOORWARD_ variable is a problem too.
package env

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/doorward/doorward/pkg/secure"
)

// prefix is the prefix of the variables of the product: an unknown variable with it is an error.
const prefix = "DOORWARD_"

// Source is the environment of one process.
type Source struct {
	values   map[string]string
	declared []variable
	problems []string
	group    string            // title of the group of the variables that are declared next
	provided map[string]string // text of DescribeDefault, by the name of the variable
	unused   map[string]bool
	partial  bool // required variables may be absent
}

// variable is a variable that a struct or List declares.
type variable struct {
	group              string
	names              []string // the first that is set applies
	defaultValue, help string
	required           bool
}

// New returns a source of the environment in the form of os.Environ.
func New(environ []string) *Source {
	s := &Source{values: map[string]string{}, provided: map[string]string{}, unused: map[string]bool{}}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if value != "" { // an empty variable counts as absent, as compose files write them
			s.values[name] = value
		}
	}
	return s
}

// SetDefault sets a variable that the environment does not set: standalone sets the addresses of the
// servers that it has started.
func (s *Source) SetDefault(name, value string) {
	if _, given := s.values[name]; !given {
		if _, given := s.values[name+"_FILE"]; !given {
			s.values[name] = value
		}
	}
}

// Group begins a group of variables, which --help shows under its title.
func (s *Source) Group(title string) { s.group = title }

// DescribeDefault sets the text that the help shows as the default of a variable which the process
// provides itself.
func (s *Source) DescribeDefault(name, what string) { s.provided[name] = what }

// Unused declares variables that have no effect on this process; the help does not show them.
func (s *Source) Unused(names ...string) {
	for _, name := range names {
		s.unused[name] = true
	}
}

// Has reports whether the environment sets the variable.
func (s *Source) Has(name string) bool {
	_, value := s.values[name]
	_, file := s.values[name+"_FILE"]
	return value || file
}

// Load sets the fields of the struct that into points to. The tag env has the name of the
// variable, or several names, of which the first that is set applies. The tags default, help,
// required:"true" and min describe the variable. A help text that is longer than a line is in what the
// method Help() map[string]string of the struct returns, under the first name of the variable. A struct
// field without the tag env is loaded in the same way, and a field of the type Reload is set to a function
// that loads the struct again.
func (s *Source) Load(into any) {
	v, long := reflect.ValueOf(into).Elem(), map[string]string(nil)
	if documented, ok := into.(interface{ Help() map[string]string }); ok {
		long = documented.Help()
	}
	for i := range v.NumField() {
		field, target := v.Type().Field(i), v.Field(i)
		if field.Type == reflect.TypeFor[Reload]() {
			target.Set(reflect.ValueOf(Reload(s.Reload)))
			continue
		}
		names := field.Tag.Get("env")
		if names == "" {
			if field.Type.Kind() == reflect.Struct {
				s.Load(target.Addr().Interface())
			}
			continue
		}
		d := variable{
			names: strings.Split(names, ","), defaultValue: field.Tag.Get("default"), help: field.Tag.Get("help"),
			required: field.Tag.Get("required") == "true",
		}
		d.help = cmp.Or(d.help, long[d.names[0]])
		s.read(d, target, field.Tag.Get("min"))
	}
	for name := range long {
		if !slices.ContainsFunc(s.declared, func(d variable) bool { return d.names[0] == name }) {
			panic(fmt.Sprintf("env: %T has a help text of %s, which is none of its variables", into, name))
		}
	}
}

// Load returns a configuration that Source.Load has loaded.
func Load[Config any](s *Source) (cfg Config) {
	s.Load(&cfg)
	return cfg
}

// List declares a variable and returns the entries of its comma-separated list.
func (s *Source) List(name, help string) (list []string) {
	s.read(variable{names: []string{name}, help: help}, reflect.ValueOf(&list).Elem(), "")
	return list
}

// read declares a variable and assigns its value, or its default, to target, or records the problem of
// the value. least is the minimum of a number, or "".
func (s *Source) read(d variable, target reflect.Value, least string) {
	s.declare(d)
	name, text, err := s.lookup(d)
	wrong := func(err error) { s.problems = append(s.problems, fmt.Sprintf("%s: %v (%s)", name, err, d.help)) }
	switch {
	case err != nil:
		wrong(err)
		return
	case text == "" && d.required && !s.partial:
		s.problems = append(s.problems, fmt.Sprintf("%s is missing: %s", d.names[len(d.names)-1], d.help))
		return
	case text == "":
		return
	}
	if err := assign(target, text, least); err != nil {
		wrong(err)
	}
}

// Reload is Source.Reload in a field of a struct that Load fills.
type Reload func(into any) error

// Reload sets the fields of the struct that into points to as Load does, with the present content
// of the files of the NAME_FILE variables. It may be called when the configuration is complete.
func (s *Source) Reload(into any) error {
	again := &Source{values: s.values}
	again.Load(into)
	if len(again.problems) > 0 {
		return errors.New(strings.Join(again.problems, "; "))
	}
	return nil
}

// Declare declares the variables of the struct that of points to, without assigning values:
// standalone loads some of them after it has started the servers whose addresses they are.
func (s *Source) Declare(of any) { s.declareWithoutReading(of) }

// Check is Declare that also records the problems of the values: standalone reports the mistakes in
// the configuration of all its parts before it starts one of them.
func (s *Source) Check(of any) {
	s.problems = append(s.problems, s.declareWithoutReading(of).problems...)
}

// declareWithoutReading declares the variables of the struct that of points to. It returns a source with
// the problems of their values, in which a required variable may be absent.
func (s *Source) declareWithoutReading(of any) *Source {
	trial := &Source{values: s.values, group: s.group, partial: true}
	trial.Load(of)
	for _, d := range trial.declared {
		s.declare(d)
	}
	return trial
}

// declare adds a variable to those that the help shows and Err knows, unless it is among them.
func (s *Source) declare(d variable) {
	if !slices.ContainsFunc(s.declared, func(other variable) bool { return slices.Equal(other.names, d.names) }) {
		if d.group == "" {
			d.group = s.group
		}
		s.declared = append(s.declared, d)
	}
}

// lookup returns the name and the value of a variable: of the first of its names that is set, by itself or
// by NAME_FILE, else its default.
func (s *Source) lookup(d variable) (name, text string, err error) {
	for _, name := range d.names {
		value, given := s.values[name]
		file, byFile := s.values[name+"_FILE"]
		switch {
		case given && byFile:
			return name, "", fmt.Errorf("both %s and %s_FILE are set; remove one", name, name)
		case given:
			return name, value, nil
		case byFile:
			content, err := os.ReadFile(file)
			if err != nil {
				return name + "_FILE", "", err
			}
			return name, strings.TrimRight(string(content), "\r\n"), nil
		}
	}
	return d.names[0], d.defaultValue, nil
}

// assign parses a value by the type of target and sets target to it. least is the minimum of a number.
func assign(target reflect.Value, text, least string) error {
	switch target.Interface().(type) {
	case secure.Secret:
		target.SetString(text)
	case time.Duration:
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 {
			return fmt.Errorf("%q is not a duration such as 250ms, 10s or 2h", text)
		}
		target.SetInt(int64(d))
	case []string:
		var list []string
		for entry := range strings.SplitSeq(text, ",") {
			if entry = strings.TrimSpace(entry); entry != "" {
				list = append(list, entry)
			}
		}
		target.Set(reflect.ValueOf(list))
	default:
		switch target.Kind() {
		case reflect.String:
			target.SetString(text)
		case reflect.Bool:
			b, err := strconv.ParseBool(text)
			if err != nil {
				return fmt.Errorf("%q is neither true nor false", text)
			}
			target.SetBool(b)
		case reflect.Int:
			n, err := strconv.Atoi(text)
			if err != nil {
				return fmt.Errorf("%q is not a whole number", text)
			}
			if limit, err := strconv.Atoi(least); err == nil && n < limit {
				return fmt.Errorf("%d is less than %d", n, limit)
			}
			target.SetInt(int64(n))
		default:
			panic("env: no rule for " + target.Type().String())
		}
	}
	return nil
}

// ErrIncomplete is in the error of a configuration that is wrong or not complete.
var ErrIncomplete = errors.New("the configuration is wrong or not complete")

// Err reports every problem found by Load, and every DOORWARD_ variable that no
// Load declared. Nil means that the configuration is complete.
func (s *Source) Err() error {
	problems := slices.Clone(s.problems)
	known := map[string]bool{}
	for _, d := range s.declared {
		for _, name := range d.names {
			known[name], known[name+"_FILE"] = true, true
		}
	}
	for name := range s.unused {
		known[name], known[name+"_FILE"] = true, true
	}
	for name := range s.values {
		if strings.HasPrefix(name, prefix) && !known[name] {
			problems = append(problems, fmt.Sprintf(
				"%s is not a variable of this process: correct its name or remove it (--help lists all)", name))
		}
	}
	if len(problems) == 0 {
		return nil
	}
	slices.Sort(problems)
	return fmt.Errorf("%w:\n  %s", ErrIncomplete, strings.Join(slices.Compact(problems), "\n  "))
}

// Help prints every declared variable with its default, group by group.
func (s *Source) Help(w io.Writer) {
	var groups []string
	for _, d := range s.declared {
		if !slices.Contains(groups, d.group) {
			groups = append(groups, d.group)
		}
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for i, group := range groups {
		if group != "" {
			_, _ = fmt.Fprintf(table, "%s%s:\n", strings.Repeat("\n", min(i, 1)), group)
		}
		for _, d := range s.declared {
			if d.group == group && !s.unused[d.names[0]] {
				_, _ = fmt.Fprintf(table, "  %s\t%s%s\n", strings.Join(d.names, ", else "), d.help, s.note(d))
			}
		}
	}
	_ = table.Flush()
	_, _ = fmt.Fprintln(w, "\nEach variable can be given as NAME_FILE, naming a file that holds the value.")
}

// note returns what the help says about the default of a variable.
func (s *Source) note(d variable) string {
	for _, name := range d.names {
		if what := s.provided[name]; what != "" {
			return " (default: " + what + ")"
		}
	}
	switch {
	case d.required:
		return " (required)"
	case d.defaultValue != "":
		return " (default " + d.defaultValue + ")"
	}
	return ""
}
