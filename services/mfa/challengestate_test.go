package mfa_test

import (
	"testing"
	"time"

	"github.com/doorward/doorward/services/mfa"
	"github.com/doorward/doorward/services/mfa/mfatest"
	"github.com/doorward/doorward/services/mfa/store"
)

// The table of docs/interface/multi-factor.md#challenge-transitions, and nothing beside it.
func TestChallengeTransitions(t *testing.T) {
	states := []string{
		store.Created, store.WaitingForProvider, store.WaitingForValidation, store.Success,
		store.Failed, store.Expired, store.Error, store.Undelivered,
	}
	allowed := map[[2]string]bool{
		{store.Created, store.WaitingForProvider}:              true,
		{store.WaitingForProvider, store.WaitingForValidation}: true,
		{store.WaitingForProvider, store.Undelivered}:          true,
	}
	for _, open := range []string{store.Created, store.WaitingForProvider, store.WaitingForValidation, store.Failed} {
		for _, to := range []string{store.Success, store.Failed, store.Expired, store.Error} {
			allowed[[2]string{open, to}] = true
		}
	}
	for _, from := range states {
		for _, to := range states {
			if got := mfa.CanTransition(from, to); got != allowed[[2]string{from, to}] {
				t.Errorf("from %s to %s: %v", from, to, got)
			}
		}
	}
}

func TestDeliveryReportsSetTheStateOfAChallenge(t *testing.T) {
	t.Parallel()
	d := mfatest.Open(t)
	factor := d.Post(mfatest.Of(d.Jo)+"/factors", `{"type":"sms","phone":{"number":"8883915282"}}`).Want(201).Href()
	for name, c := range map[string]struct {
		news []mfa.SMSState
		want string
	}{
		"it arrives": {[]mfa.SMSState{mfa.SMSAccepted, mfa.SMSDelivered}, store.WaitingForValidation},
		"news come twice": {[]mfa.SMSState{mfa.SMSAccepted, mfa.SMSAccepted, mfa.SMSDelivered, mfa.SMSDelivered},
			store.WaitingForValidation},
		"it does not arrive":       {[]mfa.SMSState{mfa.SMSAccepted, mfa.SMSFailed}, store.Undelivered},
		"it arrives after all":     {[]mfa.SMSState{mfa.SMSAccepted, mfa.SMSFailed, mfa.SMSDelivered}, store.Undelivered},
		"the gateway never got it": {[]mfa.SMSState{mfa.SMSDelivered, mfa.SMSFailed}, store.Created},
		"it cannot be sent":        {[]mfa.SMSState{mfa.SMSUnsendable, mfa.SMSAccepted}, store.Error},
	} {
		t.Run(name, func(t *testing.T) {
			challenge := d.Post(factor+"/challenges", "").Want(201).Href()
			for _, news := range c.news {
				if err := d.Service.UpdateSMSState(t.Context(), d.Ref(challenge), news); err != nil {
					t.Fatal(err)
				}
			}
			if got := d.Get(challenge).Text("status"); got != c.want {
				t.Errorf("the challenge is %s, want %s", got, c.want)
			}
		})
	}
	t.Run("an answer comes before the news", func(t *testing.T) {
		challenge := d.Post(factor+"/challenges", "").Want(201).Href()
		d.Post(challenge, `{"code":"`+d.Code(challenge)+`"}`).Want(200)
		if err := d.Service.UpdateSMSState(t.Context(), d.Ref(challenge), mfa.SMSAccepted); err != nil {
			t.Fatal(err)
		}
		if got := d.Get(challenge).Text("status"); got != store.Success {
			t.Errorf("the challenge is %s", got)
		}
	})
	t.Run("news come when its time is over", func(t *testing.T) {
		challenge := d.Post(factor+"/challenges", "").Want(201).Href()
		d.Move(300 * time.Second)
		if err := d.Service.UpdateSMSState(t.Context(), d.Ref(challenge), mfa.SMSAccepted); err != nil {
			t.Fatal(err)
		}
		if got := d.Get(challenge).Text("status"); got != store.Expired {
			t.Errorf("the challenge is %s", got)
		}
	})
}
