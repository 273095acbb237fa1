package run

import "testing"

func TestMemoryIsReturnedOnceTheProcessIsIdle(t *testing.T) {
	const mib = 1 << 20
	var a allocations
	for _, look := range []struct {
		name      string
		allocated uint64
		want      bool
	}{
		{"after the start", 60 * mib, false},
		{"idle after the start", 61 * mib, true},
		{"idle, nothing to return", 62 * mib, false},
		{"after a login", 81 * mib, false},
		{"during many logins", 900 * mib, false},
		{"idle after logins", 901 * mib, true},
		{"idle again", 902 * mib, false},
		{"a little each time", 905 * mib, false},
		{"until it is worth a collection", 908 * mib, true},
	} {
		if got := a.shouldReturn(look.allocated); got != look.want {
			t.Errorf("%s: shouldReturn(%d MiB) = %v", look.name, look.allocated/mib, got)
		}
	}
}
