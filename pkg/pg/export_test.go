package pg

// Asked tells how many resources wait for the next round trip of a loader.
func Asked[Row any](l *Loader[Row]) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next == nil {
		return 0
	}
	return len(l.next.asked)
}
