package application

import (
	"strings"
	"testing"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
)

// A label that is accepted is one of a host name, and has one form.
func FuzzHostLabel(f *testing.F) {
	for _, seed := range []string{"calm-otter", "A", "-a", "a-", "a.b", "a b", " a ", "a\n", "ß", "K",
		strings.Repeat("x", 64)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		label, err := hostLabel(field.Some(text), "dnsLabel")
		if err != nil {
			if status := apierr.From(err).Status; status != 400 {
				t.Fatalf("the label %q is refused with %d %v, want 400", text, status, err)
			}
			return
		}
		if label == "" || len(label) > 63 || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" ||
			strings.Trim(label, "-") != label {
			t.Fatalf("%q is taken for the label %q", text, label)
		}
		if again, err := hostLabel(field.Some(label), "dnsLabel"); err != nil || again != label {
			t.Fatalf("%q becomes %q, %v", label, again, err)
		}
	})
}
