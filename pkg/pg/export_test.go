package pg

import "github.com/doorward/doorward/pkg/id"

// Asked tells how many resources wait for the next query of a loader.
func Asked[Row Part](l *Loader[Row]) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next == nil {
		return 0
	}
	return len(l.next.asked)
}

// Kept reports whether a cache keeps a resource.
func Kept[Row Part](c *Cache[Row], ref id.Ref) bool {
	_, ok, _ := c.get(ref)
	return ok
}
