package dpop

import (
	"strings"
	"testing"

	"github.com/doorward/doorward/pkg/apierr"
)

// FuzzProof checks that a proof of any form is refused as such, or has all that is needed.
func FuzzProof(f *testing.F) {
	for _, seed := range []string{"", "a.b.c", "eyJ0eXAiOiJkcG9wK2p3dCIsImFsZyI6IkVTMjU2IiwiandrIjp7fX0.e30.AA",
		strings.Repeat("e30.", 3)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse([]string{text})
		if err == nil && (p.JKT == "" || p.ID == "" || p.method == "" || p.address == "") {
			t.Fatalf("%q is %+v", text, p)
		}
		if err != nil && apierr.From(err).Status != 400 {
			t.Fatalf("%q: %v", text, err)
		}
	})
}
