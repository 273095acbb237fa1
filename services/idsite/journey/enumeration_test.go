package journey

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
)

// The row more that an account costs does not show in the time of an answer.
func TestTheTimeOfAnAnswerIsRoundedUp(t *testing.T) {
	t.Parallel()
	for work, want := range map[time.Duration]time.Duration{
		0: responseTimeStep, 20 * time.Millisecond: responseTimeStep, 49 * time.Millisecond: responseTimeStep, 70 * time.Millisecond: 2 * responseTimeStep,
		72 * time.Millisecond: 2 * responseTimeStep, 330 * time.Millisecond: 7 * responseTimeStep,
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			err := hideAccountExistence(t.Context(), func() error {
				<-time.After(work) // of the bubble
				return apierr.NoSuchResource
			})
			if took := time.Since(began); err != nil || took != want {
				t.Errorf("%s of work are answered after %s, want %s: %v", work, took, want, err)
			}
		})
	}
	for _, failure := range []error{apierr.TooMany, apierr.Unavailable} {
		if err := hideAccountExistence(t.Context(), func() error { return failure }); !errors.Is(err, failure) {
			t.Errorf("%v is answered as %v", failure, err)
		}
	}
}
