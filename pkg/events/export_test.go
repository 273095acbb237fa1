package events

import "time"

// SetPace lets tests fail fast: it sets the first pause after a failure.
func SetPace(first time.Duration) { firstPause = first }
