package app_test

import (
	"context"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"
)

// killMails is set to the number of registrations where copies are measured
// (make kill).
const killMails = "NOTIFICATION_KILL_MAILS"

// TestAServiceThatIsKilledEverySecondLosesNoMail kills the service's process
// each second and starts it again, without a pause: while accounts register, and
// until the last mail has come. A kill may repeat those mails that were in the
// hands of the senders, and no others.
//
// The killed process stays a member of the consumer group for its session timeout;
// the next one removes it (pkg/events/outbox/group.go).
//
// How many copies there are depends on chance and on how long the record of a mail
// waits for a processor: fewer than one in a thousand on an idle machine, several
// times that on a full one. The log has the number; the bound is generous.
func TestAServiceThatIsKilledEverySecondLosesNoMail(t *testing.T) {
	t.Parallel()
	const senders = 4
	mails, lease := 400, leaseTime
	if text, measured := os.LookupEnv(killMails); measured {
		var err error
		if mails, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
		lease = 0 // that of the product
	}
	w := newWorld(t)
	kills := w.registerUnderKills(mails, lease)
	copies := len(w.mail.Taken()) - w.different()
	t.Logf("%d mails, %d kills, %d copies", mails, kills, copies)
	if copies > kills*senders {
		t.Errorf("%d kills of %d senders made %d copies", kills, senders, copies)
	}
}

// registerUnderKills registers accounts and waits until each has its mail, while
// the service is killed every second.
func (w *world) registerUnderKills(accounts int, leaseTime time.Duration) (kills int) {
	w.t.Helper()
	began, stop := time.Now(), w.killEverySecond(leaseTime)
	pace := time.NewTicker(6 * time.Millisecond)
	defer pace.Stop()
	for range accounts {
		w.register(w.t.Context())
		<-pace.C
	}
	w.t.Logf("%d registrations in %s, %d mails came meanwhile", accounts, time.Since(began).Round(time.Millisecond),
		w.different())
	w.awaitDifferent(accounts)
	w.t.Logf("all came in %s", time.Since(began).Round(time.Millisecond))
	return stop()
}

// different counts the mails that have come, and one that came twice once.
func (w *world) different() int {
	seen := map[string]bool{}
	for _, m := range w.mail.Taken() {
		seen[m.ID] = true
	}
	return len(seen)
}

// awaitDifferent waits until there are so many mails, as long as they become
// more.
func (w *world) awaitDifferent(want int) {
	w.t.Helper()
	const noProgress = 45 * time.Second
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for most, progress := -1, time.Now(); ; <-tick.C {
		n := w.different()
		if n >= want {
			return
		}
		if n > most {
			most, progress = n, time.Now()
		}
		if time.Since(progress) > noProgress {
			w.t.Fatalf("%d of %d mails have come, and no more are coming", n, want)
		}
	}
}

// killEverySecond starts the service and kills it a second later, again and
// again. stop ends that with a kill, and returns the number of kills.
func (w *world) killEverySecond(leaseTime time.Duration) (stop func() (kills int)) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan int, 1)
	go func() {
		second := time.NewTicker(time.Second)
		defer second.Stop()
		for kills := 0; ; {
			command := exec.Command(os.Args[0])
			command.Env = append(append([]string{}, w.env...), process+"="+leaseTime.String())
			if err := command.Start(); err != nil {
				w.t.Error(err)
				done <- kills
				return
			}
			select {
			case <-ctx.Done():
			case <-second.C:
			}
			_ = command.Process.Kill()
			_ = command.Wait()
			kills++
			if ctx.Err() != nil {
				done <- kills
				return
			}
		}
	}()
	w.t.Cleanup(cancel)
	return func() int {
		cancel()
		return <-done
	}
}
