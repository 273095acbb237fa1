package rest

import "time"

// Time renders as the interface's datetime: UTC with three digits of
// milliseconds.
type Time time.Time

// MarshalText writes 2026-11-20T20:25:00.000Z.
func (t Time) MarshalText() ([]byte, error) {
	return time.Time(t).UTC().AppendFormat(make([]byte, 0, 24), "2006-01-02T15:04:05.000Z"), nil
}
