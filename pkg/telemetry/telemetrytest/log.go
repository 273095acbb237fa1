// Package telemetrytest reads in tests what the product logs.
package telemetrytest

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"sync"
	"testing"

	"github.com/doorward/doorward/pkg/telemetry"
)

// Log is the log of the process, from NewLog on until the test ends.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// NewLog replaces the log of the process until the test ends. Tests with it must not run in parallel.
func NewLog(t testing.TB) *Log {
	t.Helper()
	l, former := &Log{}, slog.Default()
	slog.SetDefault(slog.New(telemetry.Handler(l, slog.LevelInfo)))
	t.Cleanup(func() { slog.SetDefault(former) })
	return l
}

// Write adds a line.
func (l *Log) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

// Audited returns the lines of the audit log of one kind, without time, level, message and kind.
func (l *Log) Audited(t testing.TB, kind string) (lines []map[string]any) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range bytes.Lines(l.text.Bytes()) {
		var found map[string]any
		if err := json.Unmarshal(line, &found); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if found["msg"] != "audit" || found["level"] != "INFO" || found["kind"] != kind {
			continue
		}
		for _, name := range []string{"time", "level", "msg", "kind"} {
			delete(found, name)
		}
		lines = append(lines, found)
	}
	return lines
}
