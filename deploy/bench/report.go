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

	"github.com/doorward/doorward/deploy/e2e/loadgen"
)

// report is everything that one run of the program found.
type report struct {
	options     options
	started     time.Time
	loadAverage string // of the machine at the start
	rows        []*row
	skipped     string // lines about what was not measured, and why
}

// row is one line of the report: the median of its values with the lowest and the
// highest, and its ratio to another row of the same rounds.
type row struct {
	section, name, unit string
	reference           *row // whose figures divide those of this row; nil: none
	rateAim, cpuAim     string
	values              []float64 // of each round
	cpu                 []float64 // microseconds of one operation, in all processes that are measured
	sum                 outcome   // of all rounds
	note                string
}

func newReport(o options) *report {
	load, _ := os.ReadFile("/proc/loadavg")
	return &report{options: o, started: time.Now(), loadAverage: strings.Join(strings.Fields(string(load) + " - - -")[:3],
		" ")}
}

// add adds a row. Its aim is one of its values as long as it has no reference.
func (r *report) add(section, name, unit, aim string, values ...float64) *row {
	w := &row{section: section, name: name, unit: unit, values: values, rateAim: aim}
	r.rows = append(r.rows, w)
	return w
}

// row is the first row of a name, nil where there is none.
func (r *report) row(name string) *row {
	if i := slices.IndexFunc(r.rows, func(w *row) bool { return w.name == name }); i >= 0 {
		return r.rows[i]
	}
	return nil
}

func (r *report) skip(name string, reason error) {
	r.skipped += fmt.Sprintf("skipped %s: %v\n", name, reason)
}

// print writes the report: one table, and what belongs to no column.
func (r *report) print(out io.Writer) {
	o, cost := r.options, pwhash.DefaultCost
	postgres, _ := private.Find(os.Getenv("DOORWARD_POSTGRES_BIN"))
	fmt.Fprintf(out, "\nDoorward benchmark, %s, commit %s, %.0f s\n", r.started.Format(time.RFC3339),
		outputOf("git", "describe", "--always", "--dirty"), time.Since(r.started).Seconds())
	fmt.Fprintf(out, "%s/%s, %d processors, %s, load average %s\n",
		runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), r.loadAverage)
	fmt.Fprintf(out, "argon2id, %d KiB, %d passes, %d lanes, %s\n", cost.Memory, cost.Time, cost.Threads,
		outputOf(filepath.Join(postgres, "postgres"), "--version"))
	fmt.Fprintf(out, "%d rounds of %s, %d connections, %d accounts; measured with %s, all other settings as they are\n\n",
		o.rounds, o.duration, o.connections, o.accounts, strings.Join(productSettings, ", "))
	r.printTable(out)
	fmt.Fprintln(out, "\nCPU µs of an operation by process:")
	notes := ""
	for _, w := range r.rows {
		if processes := w.processes(); len(processes) > 1 {
			fmt.Fprintf(out, "  %s, %s: %s\n", w.section, w.name, strings.Join(processes, ", "))
		}
		if text := w.notes(); text != "" {
			notes += fmt.Sprintf("%s, %s: %s\n", w.section, w.name, text)
		}
	}
	fmt.Fprint(out, notes, r.skipped)
}

// outputOf is what a program prints; nothing where it fails.
func outputOf(program string, args ...string) string {
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
		fmt.Fprintf(table, "  %s\t\n", strings.Join(w.columns(), "\t"))
	}
	_ = table.Flush()
}

func (w *row) columns() []string {
	reference := w.reference
	if reference == nil {
		reference = &row{}
	}
	used := w.sum.usage
	return slices.Concat([]string{w.name}, medianAndRange(w.values), []string{w.unit, reference.name},
		medianAndRange(ratios(w.values, reference.values)), []string{w.rateAim},
		medianAndRange(w.cpu), medianAndRange(ratios(w.cpu, reference.cpu)), []string{w.cpuAim,
			number(loadgen.Percentile(w.sum.All(), 50)), number(loadgen.Percentile(w.sum.All(), 99)),
			number(used.percent(used.generator)), number(used.percent(used.machine - used.generator - used.measured()))})
}

// processes are the parts of the processor time of one operation.
func (w *row) processes() (parts []string) {
	for _, name := range slices.Sorted(maps.Keys(w.sum.usage.processes)) {
		micros := float64(w.sum.usage.processes[name].Microseconds()) / float64(max(w.sum.Done(), 1))
		if micros >= 0.5 {
			parts = append(parts, fmt.Sprintf("%s %.0f", name, micros))
		}
	}
	return parts
}

func (w *row) notes() string {
	notes := w.note
	if w.sum.Unsent > 0 || len(w.sum.Late) > 0 {
		notes += fmt.Sprintf("%d unsent; the generator was at most %.2f ms late in 99 of 100. ", w.sum.Unsent,
			loadgen.Percentile(w.sum.Late, 99))
	}
	if w.sum.Example != nil {
		notes += "failed: " + w.sum.FailuresText() + ", for example " + w.sum.Example.Error()
	}
	return notes
}

// medianAndRange are the columns of values: their median, the lowest and the highest.
func medianAndRange(values []float64) []string {
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

// ratios divides figures of the same rounds. A round in which one figure is 0, and was
// not measured, is left out; where there are no references, there are no ratios.
func ratios(values, references []float64) (quotients []float64) {
	for i := range min(len(values), len(references)) {
		if values[i] > 0 && references[i] > 0 {
			quotients = append(quotients, values[i]/references[i])
		}
	}
	return quotients
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
