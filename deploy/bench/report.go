package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/doorward/doorward/pkg/pg/private"
	"github.com/doorward/doorward/pkg/secure/pwhash"
)

// report is everything that one run of the program found.
type report struct {
	options options
	began   time.Time
	load    string // of the machine at the start
	rows    []*row
	skipped []string // what was not measured, and why
}

// row is one figure: the median of its values with the lowest and the highest, and
// its ratio to another of the same rounds.
type row struct {
	section, name, unit string
	over                *row // nil: none
	aims                aims
	values              []float64 // of each round
	cpu                 []float64 // microseconds of one operation, in all processes that are measured
	sum                 outcome   // of all rounds
	note                string
}

// aims are those of the ratios of a row; a row without another has one of its
// value, as rate.
type aims struct {
	rate, cpu string
}

func newReport(o options) *report {
	load, _ := os.ReadFile("/proc/loadavg")
	return &report{options: o, began: time.Now(), load: strings.Join(strings.Fields(string(load) + " - - -")[:3], " ")}
}

// add adds a row of values that are compared with nothing.
func (r *report) add(section, name, unit, aim string, values ...float64) *row {
	w := &row{section: section, name: name, unit: unit, values: values, aims: aims{rate: aim}}
	r.rows = append(r.rows, w)
	return w
}

// row is the first one of a name, nil where there is none.
func (r *report) row(name string) *row {
	for _, w := range r.rows {
		if w.name == name {
			return w
		}
	}
	return nil
}

func (r *report) skip(name string, reason error) {
	r.skipped = append(r.skipped, fmt.Sprintf("%s: %v", name, reason))
}

// print writes the report: one table, and what belongs to no column.
func (r *report) print(out io.Writer) {
	o, cost := r.options, pwhash.DefaultCost
	postgres, _ := private.Find(os.Getenv("DOORWARD_POSTGRES_BIN"))
	fmt.Fprintf(out, "\nDoorward benchmark, %s, commit %s, %.0f s\n", r.began.Format(time.RFC3339),
		said("git", "describe", "--always", "--dirty"), time.Since(r.began).Seconds())
	fmt.Fprintf(out, "%s/%s, %d processors, %s, load average %s\n", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), r.load)
	fmt.Fprintf(out, "argon2id, %d KiB, %d passes, %d lanes, %s\n", cost.Memory, cost.Time, cost.Threads,
		said(filepath.Join(postgres, "postgres"), "--version"))
	fmt.Fprintf(out, "%d rounds of %s, %d connections, %d accounts; measured with %s, all other settings as they are\n\n",
		o.rounds, o.duration, o.connections, o.accounts, strings.Join(settings, ", "))
	r.printTable(out)
	fmt.Fprintln(out, "\nCPU µs of an operation by process:")
	for _, w := range r.rows {
		if processes := w.processes(); len(processes) > 1 {
			fmt.Fprintf(out, "  %s, %s: %s\n", w.section, w.name, strings.Join(processes, ", "))
		}
	}
	for _, w := range r.rows {
		if notes := w.notes(); notes != "" {
			fmt.Fprintf(out, "%s, %s: %s\n", w.section, w.name, notes)
		}
	}
	for _, skipped := range r.skipped {
		fmt.Fprintf(out, "skipped %s\n", skipped)
	}
}

// said is what a program prints; nothing where it cannot.
func said(program string, args ...string) string {
	out, _ := exec.Command(program, args...).Output()
	return strings.TrimSpace(string(out))
}

func (r *report) printTable(out io.Writer) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\tmedian\tlow\thigh\tunit\tover\tratio\tlow\thigh\taim"+
		"\tCPU µs/op\tlow\thigh\tratio\tlow\thigh\taim\tp50 ms\tp99 ms\tgenerator %\tothers %\t")
	section := ""
	for _, w := range r.rows {
		if w.section != section {
			section = w.section
			fmt.Fprintf(table, "%s%s\n", strings.ToUpper(section), strings.Repeat("\t", 21))
		}
		fmt.Fprintf(table, "  %s\t\n", strings.Join(w.cells(), "\t"))
	}
	_ = table.Flush()
}

// cells are the columns of the row.
func (w *row) cells() []string {
	over := w.over
	if over == nil {
		over = &row{}
	}
	used := w.sum.usage
	return slices.Concat([]string{w.name}, cells(w.values), []string{w.unit, over.name}, cells(ratios(w.values, over.values)),
		[]string{w.aims.rate}, cells(w.cpu), cells(ratios(w.cpu, over.cpu)),
		[]string{w.aims.cpu, number(percentile(w.sum.latencies, 50)), number(percentile(w.sum.latencies, 99)),
			number(used.percent(used.generator)), number(used.percent(used.machine - used.generator - used.server()))})
}

// processes are the parts of the processor time of one operation.
func (w *row) processes() (parts []string) {
	for _, name := range slices.Sorted(maps.Keys(w.sum.usage.servers)) {
		micros := float64(w.sum.usage.servers[name].Microseconds()) / float64(max(w.sum.done(), 1))
		if micros >= 0.5 {
			parts = append(parts, fmt.Sprintf("%s %.0f", name, micros))
		}
	}
	return parts
}

func (w *row) notes() string {
	notes := w.note
	if w.sum.unsent > 0 || len(w.sum.late) > 0 {
		notes += fmt.Sprintf("%d unsent; the generator was at most %.2f ms late in 99 of 100. ", w.sum.unsent, percentile(w.sum.late, 99))
	}
	if w.sum.example != nil {
		notes += "failed: " + counts(w.sum.failures) + ", for example " + w.sum.example.Error()
	}
	return notes
}

// cells are the median of some values, the lowest and the highest.
func cells(values []float64) []string {
	if len(values) == 0 {
		return make([]string, 3)
	}
	return []string{number(median(values)), number(slices.Min(values)), number(slices.Max(values))}
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// ratios compares figures of the same rounds. A round in which one is 0, and was
// not measured, is left out; where others has none, there are no ratios.
func ratios(values, others []float64) (all []float64) {
	for i := range min(len(values), len(others)) {
		if values[i] > 0 && others[i] > 0 {
			all = append(all, values[i]/others[i])
		}
	}
	return all
}

// number has three digits where it has a fraction, and is empty for 0, which
// stands for a figure that does not exist.
func number(n float64) string {
	switch {
	case n == 0:
		return ""
	case n >= 100:
		return strconv.FormatFloat(n, 'f', 0, 64)
	default:
		return fmt.Sprintf("%#.3g", n)
	}
}
