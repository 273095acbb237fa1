package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/doorward/doorward/pkg/secure/pwhash"
)

// report is everything that one run of the program found.
type report struct {
	Date       time.Time `json:"date"`
	Took       float64   `json:"tookSeconds"`
	Options    options   `json:"options"`
	Machine    string    `json:"machine"`
	Load       string    `json:"loadAverageAtStart"`
	Hash       string    `json:"hash"`
	PostgreSQL string    `json:"postgresql"`
	BaseURL    string    `json:"baseUrl"`
	Rows       []row     `json:"rows"`
	Skipped    []string  `json:"skipped,omitempty"` // what was not measured, and why
}

// row is one figure: the median of the rounds with the lowest and the highest,
// and its ratio to another of the same round.
type row struct {
	Section   string         `json:"section"`
	Name      string         `json:"name"`
	Unit      string         `json:"unit"`
	Value     spread         `json:"value"`
	Against   string         `json:"against,omitempty"`
	Ratio     spread         `json:"ratio"`
	Aim       string         `json:"aim,omitempty"`
	P50       float64        `json:"p50Millis,omitempty"`
	P99       float64        `json:"p99Millis,omitempty"`
	CPU       float64        `json:"cpuMicros,omitempty"`        // of one operation, of the process and its children
	Generator float64        `json:"generatorPercent,omitempty"` // of all processors
	Others    float64        `json:"othersPercent,omitempty"`    // what neither the generator nor the process used
	Failures  map[string]int `json:"failures,omitempty"`
	Note      string         `json:"note,omitempty"`
}

func newReport(o options, now time.Time) *report {
	r := &report{Date: now, Options: o}
	r.Machine = fmt.Sprintf("%s/%s, %d processors, %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version())
	if raw, err := os.ReadFile("/proc/loadavg"); err == nil {
		r.Load = strings.Join(strings.Fields(string(raw))[:3], " ")
	}
	cost := pwhash.DefaultCost
	r.Hash = fmt.Sprintf("argon2id, %d KiB, %d passes, %d lanes", cost.Memory, cost.Time, cost.Threads)
	return r
}

func (r *report) add(rows ...row) { r.Rows = append(r.Rows, rows...) }

func (r *report) skip(name, reason string) {
	r.Skipped = append(r.Skipped, name+": "+reason)
}

// figures fills the part of a row that comes from all rounds together.
func (w row) figures(all *outcome) row {
	w.P50, w.P99, w.Failures = all.millis(50), all.millis(99), all.failures
	if done := all.done(); done > 0 {
		w.CPU = float64(all.usage.server.Microseconds()) / float64(done)
	}
	w.Generator = all.usage.percent(all.usage.generator)
	w.Others = all.usage.percent(all.usage.machine - all.usage.generator - all.usage.server)
	if all.example != nil {
		w.Note = strings.TrimSpace(w.Note + " failed: " + counts(all.failures) + ", for example " + all.example.Error())
	}
	return w
}

// print writes the report for people: one table, and what belongs to no column.
func (r *report) print(out io.Writer) {
	o := r.Options
	fmt.Fprintf(out, "\nDoorward benchmark, %s, %.0f s\n%s, load average %s\n%s, PostgreSQL %s, %s\n",
		r.Date.Format(time.RFC3339), r.Took, r.Machine, r.Load, r.Hash, r.PostgreSQL, r.BaseURL)
	fmt.Fprintf(out, "%d rounds of %s, %d connections, %d accounts\n\n", o.Rounds, o.Duration, o.Connections, o.Accounts)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\tmedian\tlow\thigh\tunit\tover\tratio\tlow\thigh\taim\tp50 ms\tp99 ms\tCPU µs/op\tgenerator %\tothers %\t")
	section := ""
	for _, w := range r.Rows {
		if w.Section != section {
			section = w.Section
			fmt.Fprintf(table, "%s%s\n", strings.ToUpper(section), strings.Repeat("\t", 15))
		}
		cells := []string{"  " + w.Name, number(w.Value.Median), number(w.Value.Low), number(w.Value.High), w.Unit, w.Against,
			number(w.Ratio.Median), number(w.Ratio.Low), number(w.Ratio.High), w.Aim,
			number(w.P50), number(w.P99), number(w.CPU), number(w.Generator), number(w.Others)}
		fmt.Fprintln(table, strings.Join(cells, "\t")+"\t")
	}
	_ = table.Flush()
	fmt.Fprintln(out)
	for _, w := range r.Rows {
		if w.Note != "" && len(w.Failures) == 0 {
			fmt.Fprintf(out, "%s: %s\n", w.Name, w.Note)
		}
	}
	for _, w := range r.Rows {
		if len(w.Failures) > 0 {
			fmt.Fprintf(out, "%s: %s\n", w.Name, w.Note)
		}
	}
	for _, skipped := range r.Skipped {
		fmt.Fprintf(out, "skipped %s\n", skipped)
	}
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
