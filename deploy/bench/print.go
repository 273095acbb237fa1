package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// print writes the report for people.
func (r *Report) print(out io.Writer) {
	fmt.Fprintf(out, "\nDoorward benchmark, %s\n\n", r.Date.Format(time.RFC3339))
	r.printSettings(out)
	if r.Standalone != nil {
		r.printStandalone(out)
	}
	if len(r.Closed) > 0 {
		r.printClosed(out)
	}
	if len(r.Open) > 0 {
		r.printOpen(out)
	}
	r.printFailures(out)
}

func (r *Report) printSettings(out io.Writer) {
	t := columns(out)
	defer t.Flush()
	row(t, "machine", fmt.Sprintf("%d cores, %s, %s; load average at the start %s", r.Cores, r.System, r.Go, r.Load))
	row(t, "deployment", r.deployment())
	if r.TLS != "" {
		encrypted := r.TLS + ", kept alive"
		if r.TLSOther != r.TLS {
			encrypted += "; baseline: " + r.TLSOther
		}
		row(t, "TLS", encrypted)
		row(t, "password hash", r.Hash)
		row(t, "accounts", fmt.Sprintf("%d seeded (as many rows in the baseline's table), %d more created by the measurement", r.Seeded, r.Created))
		row(t, "baseline", "Fiber in a process of its own, private PostgreSQL "+r.PostgreSQL)
		row(t, "load", fmt.Sprintf("loop %s, %d connections, %d rounds, runs of %s after %s of warming up",
			r.Options.Loop, r.Options.Connections, r.Options.Rounds, r.Options.Duration, r.Options.warm()))
	}
	row(t, "took", fmt.Sprintf("%.0f s", r.Took))
}

func (r *Report) deployment() string {
	if r.Standalone == nil {
		return r.BaseURL + ", which ran already; its hash is taken to be the default"
	}
	return "standalone, started for this"
}

func (r *Report) printStandalone(out io.Writer) {
	s := r.Standalone
	fmt.Fprint(out, "\nStandalone\n\n")
	t := columns(out)
	defer t.Flush()
	row(t, "", "median", "lowest", "highest", "target")
	starts := func(name string, seconds []float64, target time.Duration) {
		if len(seconds) == 0 {
			return
		}
		row(t, name, fmt.Sprintf("%.2f s", median(seconds)), fmt.Sprintf("%.2f s", slices.Min(seconds)), fmt.Sprintf("%.2f s of %d", slices.Max(seconds), len(seconds)), fmt.Sprintf("< %s", target))
	}
	starts("cold start, empty data folder", s.Cold, coldTarget)
	starts("warm start", s.Warm, warmTarget)
	resident := func(name string, bytes int64) {
		if bytes == 0 {
			return
		}
		row(t, name, mebibytes(bytes), "", "", "< "+mebibytes(memoryTarget))
	}
	resident("resident without PostgreSQL, idle", s.Idle)
	if len(r.Closed)+len(r.Open) > 0 {
		resident("resident without PostgreSQL, after the load", s.AfterLoad)
	}
	resident("resident without PostgreSQL, highest", s.Peak)
}

func mebibytes(bytes int64) string { return fmt.Sprintf("%.0f MiB", float64(bytes)/(1<<20)) }

func (r *Report) printClosed(out io.Writer) {
	fmt.Fprintf(out, "\nClosed loop: as many operations as %d connections can do. The ratios are rates over those of the\nbaselines in the same round, the median of the rounds with the lowest and the highest.\n\n", r.Options.Connections)
	t := columns(out)
	row(t, "", "a second", "over bare", "over row", "over hash", "p50 ms", "p90", "p99", "max", "CPU/op", "failed")
	for _, b := range r.Baselines {
		row(t, append([]string{"bare " + map[string]string{bareName: "handler", rowName: "handler + one SELECT"}[b.Name], number(b.PerSecond), "", "", ""}, b.cells()...)...)
	}
	row(t, "bare password hash", number(r.HashPerSecond), "", "", "", "", "", "", "", "", "")
	for _, c := range r.Closed {
		row(t, append([]string{c.Name, number(c.PerSecond), c.OverBare.String(), c.OverRow.String(), c.OverHash.String()}, c.cells()...)...)
	}
	_ = t.Flush()

	fmt.Fprint(out, "\nWhere the processors' time went, in percent of all there was:\n\n")
	t = columns(out)
	defer t.Flush()
	row(t, "", "generator", "server", "its PostgreSQL", "others")
	share := func(f Figures) {
		row(t, f.Name, percent(f.Shares.Generator), percent(f.Shares.Server), percent(f.Shares.Database), percent(f.Shares.Others))
	}
	for _, b := range r.Baselines {
		share(b.Figures)
	}
	for _, c := range r.Closed {
		share(c.Figures)
	}
}

func (r *Report) printOpen(out io.Writer) {
	fmt.Fprint(out, "\nOpen loop: a fixed rate over the same connections; latencies in ms from the time at which an operation\nwas meant to be sent. Row: the bare handler with one SELECT, at the same rate, in turns.\n\n")
	t := columns(out)
	defer t.Flush()
	row(t, "", "a second", "p50", "p90", "p99", "max", "row p50", "row p99", "p50 over row", "unsent", "failed", "generator CPU", "generator late p99")
	for _, o := range r.Open {
		over := ""
		if o.Row.P50 > 0 {
			over = number(o.Latency.P50 / o.Row.P50)
		}
		row(t, o.Name, number(o.Rate), millis(o.Latency.P50), millis(o.Latency.P90), millis(o.Latency.P99), millis(o.Latency.Max),
			millis(o.Row.P50), millis(o.Row.P99), over, strconv.Itoa(o.Unsent), failures(o.Failures), percent(o.Shares.Generator), millis(o.Late.P99))
	}
}

func (r *Report) printFailures(out io.Writer) {
	told := map[string]bool{}
	for _, f := range r.all() {
		if f.Example != "" && !told[f.Name] {
			told[f.Name] = true
			fmt.Fprintf(out, "\n%s failed, for example: %s\n", f.Name, f.Example)
		}
	}
}

// cells are those that baselines and operations have in common.
func (f Figures) cells() []string {
	cost := ""
	if f.CostMicros > 0 {
		cost = number(f.CostMicros) + " us"
	}
	return []string{millis(f.Latency.P50), millis(f.Latency.P90), millis(f.Latency.P99), millis(f.Latency.Max), cost, failures(f.Failures)}
}

// String is empty where nothing was compared.
func (r Ratio) String() string {
	if r.Median == 0 {
		return "-"
	}
	return number(r.Median) + " (" + number(r.Low) + "-" + number(r.High) + ")"
}

// failures are counts by status, or "0".
func failures(by map[string]int) string {
	if len(by) == 0 {
		return "0"
	}
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(by)) {
		parts = append(parts, fmt.Sprintf("%d x %s", by[kind], kind))
	}
	return strings.Join(parts, ", ")
}

// number shows three digits, or all before the point.
func number(n float64) string {
	switch {
	case n >= 100:
		return strconv.FormatFloat(n, 'f', 0, 64)
	case n >= 10:
		return strconv.FormatFloat(n, 'f', 1, 64)
	case n >= 1:
		return strconv.FormatFloat(n, 'f', 2, 64)
	default:
		return strconv.FormatFloat(n, 'g', 3, 64)
	}
}

func millis(n float64) string  { return strconv.FormatFloat(n, 'f', 2, 64) }
func percent(n float64) string { return strconv.FormatFloat(n, 'f', 0, 64) }

func columns(out io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(out, 0, 0, 2, ' ', 0) }

func row(t io.Writer, cells ...string) { fmt.Fprintln(t, "  "+strings.Join(cells, "\t")) }
