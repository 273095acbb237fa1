package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/doorward/doorward/pkg/secure/pwhash"
)

// report is everything that one run of the program found.
type report struct {
	Date       time.Time `json:"date"`
	Commit     string    `json:"commit"`
	Took       float64   `json:"tookSeconds"`
	Options    options   `json:"options"`
	Machine    string    `json:"machine"`
	Load       string    `json:"loadAverageAtStart"`
	Hash       string    `json:"hash"`
	PostgreSQL string    `json:"postgresql"`
	Settings   []string  `json:"settings"` // of the product, other than the defaults
	Rows       []row     `json:"rows"`
	Skipped    []string  `json:"skipped,omitempty"` // what was not measured, and why
}

// row is one figure: the median of the rounds with the lowest and the highest,
// and its ratio to another of the same round.
type row struct {
	Section   string             `json:"section"`
	Name      string             `json:"name"`
	Unit      string             `json:"unit"`
	Value     spread             `json:"value"`
	Over      string             `json:"over,omitempty"`
	Ratio     spread             `json:"ratio"`
	CPU       spread             `json:"cpuMicros"` // of one operation, in all processes that are measured
	CPURatio  spread             `json:"cpuRatio"`
	Aims      aims               `json:"aims"`
	P50       float64            `json:"p50Millis,omitempty"`
	P99       float64            `json:"p99Millis,omitempty"`
	Processes map[string]float64 `json:"cpuMicrosByProcess,omitempty"`
	Generator float64            `json:"generatorPercent,omitempty"` // of all processors
	Others    float64            `json:"othersPercent,omitempty"`    // what neither the generator nor the processes used
	Failures  map[string]int     `json:"failures,omitempty"`
	Note      string             `json:"note,omitempty"`
}

// aims are those of the ratios of a row; a row without another has one of its
// value, as rate.
type aims struct {
	Rate string `json:"rate,omitempty"`
	CPU  string `json:"cpu,omitempty"`
}

func newReport(o options, now time.Time) *report {
	r := &report{Date: now, Options: o, Settings: settings}
	r.Machine = fmt.Sprintf("%s/%s, %d processors, %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version())
	if raw, err := os.ReadFile("/proc/loadavg"); err == nil {
		r.Load = strings.Join(strings.Fields(string(raw))[:3], " ")
	}
	if raw, err := exec.Command("git", "describe", "--always", "--dirty").Output(); err == nil {
		r.Commit = strings.TrimSpace(string(raw))
	}
	cost := pwhash.DefaultCost
	r.Hash = fmt.Sprintf("argon2id, %d KiB, %d passes, %d lanes", cost.Memory, cost.Time, cost.Threads)
	return r
}

func (r *report) skip(name, reason string) { r.Skipped = append(r.Skipped, name+": "+reason) }

// figures fills the part of a row that comes from all rounds together.
func (w row) figures(all *outcome) row {
	w.P50, w.P99, w.Failures = all.millis(50), all.millis(99), all.failures
	w.Processes = map[string]float64{}
	for name, used := range all.usage.servers {
		if per := float64(used.Microseconds()) / float64(max(all.done(), 1)); per >= 0.5 {
			w.Processes[name] = math.Round(per)
		}
	}
	w.Generator = all.usage.percent(all.usage.generator)
	w.Others = all.usage.percent(all.usage.machine - all.usage.generator - all.usage.server())
	if all.unsent > 0 || all.late.TotalCount() > 0 {
		w.Note += fmt.Sprintf("%d unsent; the generator was at most %.2f ms late in 99 of 100. ", all.unsent, millis(all.late, 99))
	}
	if all.example != nil {
		w.Note += "failed: " + counts(all.failures) + ", for example " + all.example.Error()
	}
	return w
}

// print writes the report for people: one table, and what belongs to no column.
func (r *report) print(out io.Writer) {
	o := r.Options
	fmt.Fprintf(out, "\nDoorward benchmark, %s, commit %s, %.0f s\n%s, load average %s\n%s, PostgreSQL %s\n",
		r.Date.Format(time.RFC3339), r.Commit, r.Took, r.Machine, r.Load, r.Hash, r.PostgreSQL)
	fmt.Fprintf(out, "%d rounds of %s, %d connections, %d accounts", o.Rounds, o.Duration, o.Connections, o.Accounts)
	fmt.Fprintf(out, "; measured with %s\n\n", strings.Join(append(r.Settings, "all other settings as they are"), ", "))
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\tmedian\tlow\thigh\tunit\tover\tratio\tlow\thigh\taim"+
		"\tCPU µs/op\tlow\thigh\tratio\tlow\thigh\taim\tp50 ms\tp99 ms\tgenerator %\tothers %\t")
	section := ""
	for _, w := range r.Rows {
		if w.Section != section {
			section = w.Section
			fmt.Fprintf(table, "%s%s\n", strings.ToUpper(section), strings.Repeat("\t", 21))
		}
		fmt.Fprintln(table, strings.Join([]string{"  " + w.Name, w.Value.cells(), w.Unit, w.Over, w.Ratio.cells(), w.Aims.Rate,
			w.CPU.cells(), w.CPURatio.cells(), w.Aims.CPU, number(w.P50), number(w.P99), number(w.Generator), number(w.Others), ""}, "\t"))
	}
	_ = table.Flush()
	fmt.Fprintln(out, "\nCPU µs of an operation by process:")
	for _, w := range r.Rows {
		if len(w.Processes) > 1 {
			var parts []string
			for _, name := range slices.Sorted(maps.Keys(w.Processes)) {
				parts = append(parts, name+" "+number(w.Processes[name]))
			}
			fmt.Fprintf(out, "  %s, %s: %s\n", w.Section, w.Name, strings.Join(parts, ", "))
		}
	}
	for _, w := range r.Rows {
		if w.Note != "" {
			fmt.Fprintf(out, "%s, %s: %s\n", w.Section, w.Name, w.Note)
		}
	}
	for _, skipped := range r.Skipped {
		fmt.Fprintf(out, "skipped %s\n", skipped)
	}
}

func (s spread) cells() string {
	return number(s.Median) + "\t" + number(s.Low) + "\t" + number(s.High)
}

// number has three digits where it has a fraction, and is empty for 0, which
// stands for a figure that does not exist.
func number(n float64) string {
	switch {
	case n == 0:
		return ""
	case math.Abs(n) >= 100:
		return strconv.FormatFloat(n, 'f', 0, 64)
	case math.Abs(n) >= 10:
		return strconv.FormatFloat(n, 'f', 1, 64)
	case math.Abs(n) >= 0.1:
		return strconv.FormatFloat(n, 'f', 2, 64)
	default:
		return strconv.FormatFloat(n, 'g', 3, 64)
	}
}

func (r *report) write(file string) error {
	raw, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		err = os.WriteFile(file, append(raw, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}
