package events_test

import (
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/id"
)

// The mail that an event causes, also through another event, is in the language of the user.
func TestAnEventNamesTheLanguageOfItsRequest(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 27, 6, 0, 0, 0, time.UTC)
	for header, want := range map[string]string{"de-CH, en;q=0.8": "de", "uk": "", "": "", "\xff;q=": ""} {
		event := events.AccountDeleted{Tenant: id.New(now), Account: id.New(now)}
		first, err := events.Wrap(caller.Into(t.Context(), caller.Caller{AcceptLanguage: header}), event, now)
		if err != nil || first.Language != want {
			t.Errorf("for Accept-Language %q the event names the language %q, %v; want %q", header, first.Language, err, want)
		}
		if second, err := events.Wrap(first.Context(t.Context()), event, now); err != nil || second.Language != want {
			t.Errorf("an event that it causes names the language %q, %v; want %q", second.Language, err, want)
		}
	}
}
