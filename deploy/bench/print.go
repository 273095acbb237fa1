package main

import (
	"fmt"
	"io"
	"maps"
	"math"
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
	if len(r.Storms) > 0 {
		r.printStorms(out)
	}
	if r.Scale != nil {
		r.printScale(out)
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
	fmt.Fprintf(out, "\nClosed loop: what %d connections can do that send as soon as they were answered. A ratio is that of the\nrates in the same round: the median of the rounds, and the lowest and the highest.\n\n", r.Options.Connections)
	t := columns(out)
	row(t, "", "a second", "over bare", "over row", "its baseline", "over it", "target", "CPU/op", "over it", "failed")
	for _, b := range r.Baselines {
		row(t, baselineTitles[b.Name], number(b.PerSecond), "", "", "", "", "", b.cost(), "", failures(b.Failures))
	}
	for _, c := range r.Closed {
		target := ""
		if c.Target > 0 {
			target = fmt.Sprintf(">= %g", c.Target)
		}
		row(t, c.Name, number(c.PerSecond), c.OverBare.String(), c.OverRow.String(), c.Baseline, c.OverBaseline.String(), target,
			c.cost(), known(c.CostOverBaseline), failures(c.Failures))
	}
	_ = t.Flush()

	fmt.Fprint(out, "\nTheir latencies in ms, and where the processors' time went, in percent of all there was:\n\n")
	t = columns(out)
	defer t.Flush()
	row(t, "", "p50", "p90", "p99", "max", "generator", "server", "its PostgreSQL", "others")
	both := func(title string, f Figures) {
		l, s := f.Latency, f.Shares
		cells := []string{"", "", "", ""}
		if l != (Percentiles{}) {
			cells = []string{millis(l.P50), millis(l.P90), millis(l.P99), millis(l.Max)}
		}
		cells = append(cells, percent(s.Generator))
		if f.CostMicros == 0 { // a process that is not ours to look at
			cells = append(cells, "-", "-", "-")
		} else {
			cells = append(cells, percent(s.Server), percent(s.Database), percent(s.Others))
		}
		row(t, append([]string{title}, cells...)...)
	}
	for _, b := range r.Baselines {
		both(baselineTitles[b.Name], b)
	}
	for _, c := range r.Closed {
		both(c.Name, c.Figures)
	}
}

var baselineTitles = map[string]string{
	bareName: "bare handler", rowName: "row: bare handler, one SELECT",
	followName: "follow: such a redirect, then row", insertName: "insert: bare handler, one INSERT",
	pairName: "pair: bare handler, two INSERTs", hashName: "hash alone, all cores",
}

func (r *Report) printOpen(out io.Writer) {
	fmt.Fprint(out, "\nOpen loop: a fixed rate over the same connections; latencies in ms from the time at which an operation\nwas meant to be sent. Row: the bare handler with one SELECT, at the same rate, in turns.\n\n")
	t := columns(out)
	defer t.Flush()
	row(t, "", "a second", "p50", "p90", "p99", "target", "max", "row p50", "row p99", "p50 over row", "unsent", "failed", "generator CPU", "generator late p99")
	for _, o := range r.Open {
		over := ""
		if o.Row.P50 > 0 {
			over = number(o.Latency.P50 / o.Row.P50)
		}
		target := ""
		if o.Promised {
			target = fmt.Sprintf("< %.0f", latencyTarget)
		}
		row(t, o.Name, number(o.Rate), millis(o.Latency.P50), millis(o.Latency.P90), millis(o.Latency.P99), target, millis(o.Latency.Max),
			millis(o.Row.P50), millis(o.Row.P99), over, strconv.Itoa(o.Unsent), failures(o.Failures), percent(o.Shares.Generator), millis(o.Late.P99))
	}
}

func (r *Report) printStorms(out io.Writer) {
	fmt.Fprintf(out, "\nStorm: the same fixed rate without logins and while %d connections log in as fast as they are answered;\nlatencies in ms.\n\n", r.Storms[0].Others)
	t := columns(out)
	defer t.Flush()
	row(t, "", "a second", "quiet p50", "quiet p99", "storm p50", "storm p99", "p99 over quiet", "target", "logins a second", "unsent", "failed")
	for _, s := range r.Storms {
		row(t, s.Name, number(s.Rate), millis(s.Quiet.P50), millis(s.Quiet.P99), millis(s.Latency.P50), millis(s.Latency.P99),
			number(s.Ratio), fmt.Sprintf("<= %g", stormTarget), number(s.Logins), strconv.Itoa(s.Unsent), failures(s.Failures))
	}
}

func (r *Report) printScale(out io.Writer) {
	s := r.Scale
	fmt.Fprintf(out, "\nScale: the same search in a directory of %d accounts and in one of %d, over one connection, in turns;\nlatencies in ms. Ratio: of the medians. Those marked <= %.0f are promised.\n\n", s.Small, s.Large, scaleTarget)
	t := columns(out)
	row(t, "", "found, small", "large", "small p50", "p90", "large p50", "p90", "ratio", "")
	for _, f := range s.Searches {
		mark := ""
		if f.Promised {
			mark = fmt.Sprintf("<= %.0f", scaleTarget)
		}
		row(t, f.Name, strconv.Itoa(f.Found[0]), strconv.Itoa(f.Found[1]), millis(f.Small.P50), millis(f.Small.P90),
			millis(f.Large.P50), millis(f.Large.P90), number(f.Ratio), mark)
	}
	_ = t.Flush()
	if broken := s.broken(); len(broken) > 0 {
		fmt.Fprintf(out, "\n  More than promised: %s.\n", strings.Join(broken, ", "))
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

// cost is "-" where it is not known.
func (f Figures) cost() string {
	switch {
	case f.CostMicros == 0:
		return "-"
	case f.CostMicros >= 1000:
		return number(f.CostMicros/1000) + " ms"
	default:
		return number(f.CostMicros) + " us"
	}
}

func known(ratio float64) string {
	if ratio == 0 {
		return "-"
	}
	return number(ratio)
}

// String is "-" where nothing was compared.
func (r Ratio) String() string {
	if r.Median == 0 {
		return "-"
	}
	return number(r.Median) + " (" + number(r.Low) + " to " + number(r.High) + ")"
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

// number shows three digits, or all before the point, and no exponent.
func number(n float64) string {
	if n <= 0 {
		return "0"
	}
	before := int(math.Floor(math.Log10(n))) + 1
	return strconv.FormatFloat(n, 'f', max(0, 3-before), 64)
}

func millis(n float64) string  { return strconv.FormatFloat(n, 'f', 2, 64) }
func percent(n float64) string { return strconv.FormatFloat(n, 'f', 0, 64) }

func columns(out io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(out, 0, 0, 2, ' ', 0) }

func row(t io.Writer, cells ...string) { fmt.Fprintln(t, "  "+strings.Join(cells, "\t")) }
