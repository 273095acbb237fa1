package oauth

import (
	"testing"

	"github.com/doorward/doorward/pkg/clocktest"
)

func TestWhatIsKeptOfAKey(t *testing.T) {
	clock := new(clocktest.Clock)
	c := newCache[string, string](clock.Now)
	kept := func(want bool) {
		t.Helper()
		if got, ok := c.get("a"); ok != want || (ok && got != "as it was") {
			t.Errorf("kept is %q, %t, want %t", got, ok, want)
		}
	}
	c.put("a", "as it was", c.read())
	kept(true)
	clock.Move(keyLifetime - 1)
	kept(true)
	clock.Move(1)
	kept(false)

	t.Run("what was read before a change is not kept after it", func(t *testing.T) {
		read := c.read()
		c.drop("a")
		c.put("a", "as it was", read)
		kept(false)
		c.put("a", "as it was", c.read())
		kept(true)
	})
	t.Run("it lives from when it was read", func(t *testing.T) {
		read := c.read()
		clock.Move(keyLifetime)
		c.put("a", "as it was", read)
		kept(false)
	})
	t.Run("a full one begins anew", func(t *testing.T) {
		for i := range keyCapacity {
			c.put(string(rune('b'+i)), "", c.read())
		}
		if n := len(c.entries); n == 0 || n > keyCapacity {
			t.Errorf("%d are kept", n)
		}
	})
}
