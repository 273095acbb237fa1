package caller

import (
	"testing"

	"github.com/doorward/doorward/pkg/id"
)

func TestWhatEndedIsOfItsTenant(t *testing.T) {
	t.Parallel()
	shop, other := id.ID{1}, id.ID{2}
	ctx, endings := CollectEndings(Into(t.Context(), Caller{Tenant: shop}))
	if header := endings.Header(); header != "" {
		t.Errorf("before an end the header is %q", header)
	}
	for range 2 {
		End(ctx, id.ID{}, id.ID{7})
		End(ctx, shop, id.ID{8})
		End(ctx, other, id.ID{9})
	}
	got := ParseEnded([]byte(endings.Header()))
	if len(got) != 2 || got[shop] != IDs("").With(id.ID{7}).With(id.ID{8}) || got[other] != IDs("").With(id.ID{9}) {
		t.Errorf("the header names %x", got)
	}
	End(t.Context(), shop, id.ID{7}) // nobody collects it
}

func TestTooManyEndingsAreOfTheWholeTenant(t *testing.T) {
	t.Parallel()
	var ended IDs
	for n := range 40 {
		ended = ended.With(id.ID{1, byte(n)})
		if whole := ended.Has(id.ID{2}); whole != (n >= maxEnded) || !ended.Has(id.ID{1, byte(n)}) {
			t.Errorf("after %d ids another one has ended too: %t", n+1, whole)
		}
	}
	if len(ended) != idSize {
		t.Errorf("the set of all ids has %d bytes", len(ended))
	}
}

func TestHeadersThatNameNothingAreIgnored(t *testing.T) {
	t.Parallel()
	for _, header := range []string{"", ",", "x", "AAAA", encoding.EncodeToString(make([]byte, 16)), encoding.EncodeToString(make([]byte, 33))} {
		if got := ParseEnded([]byte(header)); len(got) != 0 {
			t.Errorf("%q names %x", header, got)
		}
	}
}

func TestEndedIsAskedOfTheRequest(t *testing.T) {
	t.Parallel()
	ctx := Into(t.Context(), Caller{Ended: IDs("").With(id.ID{1})})
	if Ended(t.Context(), id.ID{1}) || Ended(ctx) || Ended(ctx, id.ID{2}) || !Ended(ctx, id.ID{2}, id.ID{1}) {
		t.Error("a request knows of other endings than its own")
	}
}
