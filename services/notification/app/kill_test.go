package app_test

import (
	"context"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"
)

// killMails is set to a number of registrations for a measurement by hand.
const killMails = "NOTIFICATION_KILL_MAILS"

// TestAServiceThatIsKilledEverySecondLosesNoMail kills the service's process
// each second and starts it again, without a pause: while accounts register, and
// until the last mail has come. A kill may repeat those mails that the mail
// server had taken and the service had not noted yet: fewer than one in a
// thousand.
func TestAServiceThatIsKilledEverySecondLosesNoMail(t *testing.T) {
	mails := 4000
	if text := os.Getenv(killMails); text != "" {
		var err error
		if mails, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	w := newWorld(t)
	began := time.Now()
	stop := w.killEverySecond()
	pace := time.NewTicker(5 * time.Millisecond)
	defer pace.Stop()
	for range mails {
		w.register(t.Context())
		<-pace.C
	}
	t.Logf("%d registrations in %s, %d mails meanwhile", mails, time.Since(began).Round(time.Millisecond), w.different())
	arrived := w.untilProgressEnds("mails", mails, w.different)
	took, kills := time.Since(began), stop()
	copies := len(w.mail.Taken()) - arrived
	t.Logf("%d mails in %s, %d kills, %d copies", arrived, took.Round(time.Millisecond), kills, copies)
	if copies*1000 >= mails {
		t.Errorf("%d of %d mails came twice", copies, mails)
	}
}

// different counts the mails that have come, those that came again left out.
func (w *world) different() int {
	seen := map[string]bool{}
	for _, m := range w.mail.Taken() {
		seen[m.ID] = true
	}
	return len(seen)
}

// untilProgressEnds waits until there are so many, as long as they become more,
// and gives their number.
func (w *world) untilProgressEnds(what string, want int, count func() int) (n int) {
	w.t.Helper()
	const patience = 45 * time.Second
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for most, progress := -1, time.Now(); ; <-tick.C {
		n = count()
		if n >= want {
			return n
		}
		if n > most {
			most, progress = n, time.Now()
		}
		if time.Since(progress) > patience {
			w.t.Errorf("%d of %d %s have come, and no more are coming", n, want, what)
			return n
		}
	}
}

// killEverySecond starts the service and kills it a second later, again and
// again. stop ends that with a kill, and gives the number of kills.
func (w *world) killEverySecond() (stop func() (kills int)) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan int, 1)
	go func() {
		second := time.NewTicker(time.Second)
		defer second.Stop()
		for kills := 0; ; {
			command := exec.Command(os.Args[0])
			command.Env = append(append([]string{}, w.env...), process+"=1")
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
