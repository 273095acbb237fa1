package main

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/secure/pwhash"
)

// Report is everything that one run of the program found, and all that somebody
// needs to know to do it again.
type Report struct {
	Date    time.Time `json:"date"`
	Took    float64   `json:"tookSeconds"`
	Options Options   `json:"options"`
	Length  float64   `json:"runSeconds"` // of one run

	Go      string `json:"go"`
	System  string `json:"system"`
	Cores   int    `json:"cores"`
	Load    string `json:"loadAverageAtStart"` // of the machine, over 1, 5 and 15 minutes
	BaseURL string `json:"baseUrl"`

	Hash       string `json:"hash"` // with its cost
	PostgreSQL string `json:"postgresql"`
	TLS        string `json:"tls"`         // of the product
	TLSOther   string `json:"tlsBaseline"` // of the baseline
	Seeded     int    `json:"accountsSeeded"`
	Created    int    `json:"accountsCreated"` // by the measurement

	Standalone *StandaloneFigures `json:"standalone,omitempty"`
	Baselines  []Figures          `json:"baselines,omitempty"`
	Closed     []Closed           `json:"closedLoop,omitempty"`
	Open       []Open             `json:"openLoop,omitempty"`
	Storms     []Storm            `json:"storms,omitempty"`
	Scale      *Scale             `json:"scale,omitempty"`
}

// Figures are those of one subject under a closed loop.
type Figures struct {
	Name       string         `json:"name"`
	PerSecond  float64        `json:"perSecond"` // median of the rounds
	Count      int            `json:"count"`
	CostMicros float64        `json:"processorMicrosPerOperation"` // in the process and its PostgreSQL
	Latency    Percentiles    `json:"latency"`
	Shares     Shares         `json:"processors"`
	Failures   map[string]int `json:"failures"` // by status, timeout or connection
	Example    string         `json:"failure,omitempty"`
}

// Closed is an operation under a closed loop, and its rate over those of the
// baselines in the same rounds.
type Closed struct {
	Figures
	OverBare Ratio `json:"overBare"`
	OverRow  Ratio `json:"overRow"`

	// What it is compared with, and what the ratio of the rates is meant to be;
	// 0: nothing.
	Baseline     string  `json:"baseline"`
	OverBaseline Ratio   `json:"overBaseline"`
	Target       float64 `json:"target,omitempty"`

	// The same for the processor time of one operation.
	CostOverBaseline float64 `json:"processorOverBaseline"`
}

// Open is an operation at a fixed rate, and the row handler at the same rate.
type Open struct {
	Figures
	Rate      float64     `json:"rate"`
	Unsent    int         `json:"unsent"` // operations for which no connection came free
	Row       Percentiles `json:"rowLatency"`
	RowUnsent int         `json:"rowUnsent"`
	Late      Percentiles `json:"generatorLate"` // by how much the generator missed its own schedule
	Promised  bool        `json:"promised"`      // the 99th percentile is meant to be below latencyTarget
}

// latencyTarget is what the 99th percentile at half of the highest rate is meant
// to stay below, in milliseconds, where no password is hashed.
const latencyTarget = 10.0

func newReport(o Options, date time.Time) *Report {
	cost := pwhash.DefaultCost
	return &Report{
		Date: date.Truncate(time.Second), Options: o, Length: o.Duration.Seconds(),
		Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH, Cores: runtime.NumCPU(), Load: loadAverage(),
		Hash: fmt.Sprintf("argon2id, %d KiB, %d passes, %d lane(s)", cost.Memory, cost.Time, cost.Threads),
	}
}

func loadAverage() string {
	raw, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(raw))[:3], " ")
}

// describe notes what is compared.
func (r *Report) describe(s *site, y *yardstick) (err error) {
	r.Seeded, r.PostgreSQL = len(s.accounts), y.Postgres
	if r.TLS, err = handshake(s.address, s.tls); err != nil {
		return err
	}
	r.TLSOther, err = handshake(y.Address, y.tls)
	return err
}

// handshake tells what TLS agrees on at an address.
func handshake(address string, config *tls.Config) (string, error) {
	conn, err := tls.Dial("tcp", address, config)
	if err != nil {
		return "", fmt.Errorf("look at the TLS of %s: %w", address, err)
	}
	defer conn.Close()
	state := conn.ConnectionState()
	return fmt.Sprintf("%s, %s, %s certificate", tls.VersionName(state.Version), tls.CipherSuiteName(state.CipherSuite), state.PeerCertificates[0].PublicKeyAlgorithm), nil
}

func figures(s *series) Figures {
	f := Figures{
		Name: s.name, PerSecond: median(s.rates), Count: s.count, CostMicros: float64(s.cost()) / float64(time.Microsecond),
		Latency: percentiles(s.tally.latencies), Shares: s.usage.shares(), Failures: s.tally.failures,
	}
	if s.tally.example != nil {
		f.Example = s.tally.example.Error()
	}
	return f
}

func (r *Report) addClosed(wanted []operation, all map[string]*series) {
	for _, name := range baselines {
		r.Baselines = append(r.Baselines, figures(all[name]))
	}
	for _, operation := range wanted {
		s, baseline := all[operation.name], all[operation.baseline]
		r.Closed = append(r.Closed, Closed{
			Figures: figures(s), OverBare: s.over(all[bareName]), OverRow: s.over(all[rowName]),
			Baseline: operation.baseline, OverBaseline: s.over(baseline), Target: operation.target,
			CostOverBaseline: quotient(s.cost(), baseline.cost()),
		})
	}
}

// quotient is 0 where one of both is not known.
func quotient(a, b time.Duration) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

func (r *Report) addOpen(wanted []operation, all map[string]*openSeries) {
	for _, operation := range wanted {
		s, measured := all[operation.name]
		if !measured {
			continue
		}
		r.Open = append(r.Open, Open{
			Figures: figures(s.subject), Rate: s.rate, Unsent: s.unsent,
			Row: percentiles(s.row.tally.latencies), RowUnsent: s.rowUnsent, Late: percentiles(s.late.latencies),
			Promised: operation.baseline != hashName && r.Options.Rate == 0,
		})
	}
}

// all are the figures of every table.
func (r *Report) all() (all []Figures) {
	all = append(all, r.Baselines...)
	for _, c := range r.Closed {
		all = append(all, c.Figures)
	}
	for _, o := range r.Open {
		all = append(all, o.Figures)
	}
	for _, s := range r.Storms {
		all = append(all, s.Figures)
	}
	return all
}

// failed names what did not succeed a single time: its figures mean nothing.
func (r *Report) failed() (names []string) {
	for _, f := range r.all() {
		if f.Count == 0 {
			names = append(names, f.Name)
		}
	}
	return names
}

// refused tells whether the product failed at anything.
func (r *Report) refused() bool {
	return slices.ContainsFunc(r.all(), func(f Figures) bool { return len(f.Failures) > 0 })
}

// write puts the report into a file.
func (r *Report) write(path string) error {
	raw, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the report: %w", err)
	}
	if err := os.WriteFile(path, append(raw, '\n'), 0o644); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}
