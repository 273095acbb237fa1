package outbound

import (
	"strconv"
	"strings"
	"time"
)

// CacheAge returns how long an answer may be cached by its header Cache-Control (RFC 9111, section 5.2.2): 0 where it
// forbids that, fallback where it has no max-age.
func CacheAge(cacheControl string, fallback time.Duration) time.Duration {
	age := fallback
	for directive := range strings.SplitSeq(strings.ToLower(cacheControl), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(directive), "=")
		switch name {
		case "no-store", "no-cache":
			return 0
		case "max-age":
			if seconds, err := strconv.ParseUint(strings.Trim(value, `"`), 10, 31); err == nil {
				age = time.Duration(seconds) * time.Second
			}
		}
	}
	return age
}
