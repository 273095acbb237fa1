package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/smtp"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/doorward/doorward/deploy/mailbox"
)

// builds is the folder of the binary, or empty when no test asked for it.
var builds string

// binary builds the command once for all tests.
var binary = sync.OnceValues(func() (path string, err error) {
	if builds, err = os.MkdirTemp("", "mailbox"); err != nil {
		return "", err
	}
	path = filepath.Join(builds, "mailbox")
	if out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if builds != "" {
		_ = os.RemoveAll(builds)
	}
	os.Exit(code)
}

// process is one run of the command.
type process struct {
	*exec.Cmd
	smtp string
	http string
	log  *bufio.Scanner
}

func command(t *testing.T, dir string, environment ...string) *exec.Cmd {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path)
	cmd.Dir = t.TempDir()
	cmd.Env = append([]string{
		"DOORWARD_MAILBOX_DIR=" + dir,
		"DOORWARD_MAILBOX_SMTP_LISTEN=127.0.0.1:0",
		"DOORWARD_MAILBOX_HTTP_LISTEN=127.0.0.1:0",
		"DOORWARD_MAILBOX_URL=http://belongs-to-the-gateway",
		"DOORWARD_ALIAS=belongs-to-the-services",
	}, environment...)
	return cmd
}

// launch starts the command and reads from its log where it listens.
func launch(t *testing.T, dir string) *process {
	t.Helper()
	cmd := command(t, dir)
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{Cmd: cmd, log: bufio.NewScanner(log)}
	t.Cleanup(func() {
		if p.ProcessState == nil {
			p.kill(t)
		}
	})
	for p.smtp == "" || p.http == "" {
		if !p.log.Scan() {
			t.Fatal("ended before it listened")
		}
		var line struct{ Msg, Protocol, Address string }
		if err := json.Unmarshal(p.log.Bytes(), &line); err != nil {
			t.Fatalf("%v in %s", err, p.log.Text())
		}
		switch line.Protocol {
		case "smtp":
			p.smtp = line.Address
		case "http":
			p.http = "http://" + line.Address
		}
	}
	return p
}

func (p *process) kill(t *testing.T) {
	t.Helper()
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.Wait() // It reports the signal.
}

func (p *process) send(subject string) error {
	return smtp.SendMail(p.smtp, nil, "a@example.com", []string{"b@example.com"}, []byte("Subject: "+subject+"\r\n\r\nBody\r\n"))
}

func (p *process) subjects(t *testing.T) []string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.http+"/_mailbox", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var list struct{ Messages []mailbox.Message }
	if err := json.NewDecoder(res.Body).Decode(&list); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, m := range list.Messages {
		if m.Text != "Body\r\n" {
			t.Errorf("message %s has the text %q", m.Subject, m.Text)
		}
		out = append(out, m.Subject)
	}
	return out
}

func TestAKilledProcessLosesNoMessageThatItAccepted(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "mailbox")
	var accepted []string
	t.Run("killed right after its 250", func(t *testing.T) {
		for round := range 5 {
			p := launch(t, dir)
			subject := fmt.Sprintf("round-%d", round)
			if err := p.send(subject); err != nil {
				t.Fatal(err)
			}
			p.kill(t)
			accepted = append(accepted, subject)
		}
	})
	t.Run("killed while many arrive", func(t *testing.T) {
		for round := range 3 {
			p := launch(t, dir)
			var mu sync.Mutex
			var senders sync.WaitGroup
			enough := make(chan struct{})
			count := 0
			for sender := range 8 {
				senders.Go(func() {
					for i := 0; ; i++ {
						subject := fmt.Sprintf("storm-%d-%d-%d", round, sender, i)
						if err := p.send(subject); err != nil {
							return // The process is dead.
						}
						mu.Lock()
						accepted = append(accepted, subject)
						if count++; count == 50 {
							close(enough)
						}
						mu.Unlock()
					}
				})
			}
			<-enough
			p.kill(t)
			senders.Wait()
		}
	})
	p := launch(t, dir)
	kept := p.subjects(t)
	for _, subject := range accepted {
		if !slices.Contains(kept, subject) {
			t.Errorf("%s was accepted and is lost", subject)
		}
	}
	if got := slices.Compact(slices.Sorted(slices.Values(kept))); len(got) != len(kept) {
		t.Errorf("%d messages of %d are there twice", len(kept)-len(got), len(kept))
	}
	t.Logf("%d messages accepted, %d kept", len(accepted), len(kept))
}

func TestSIGTERMEndsItInOrder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "mailbox")
	p := launch(t, dir)
	idle, err := smtp.Dial(p.smtp) // It must not delay the end.
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	if err := p.send("one"); err != nil {
		t.Fatal(err)
	}
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for p.log.Scan() {
		if strings.Contains(p.log.Text(), `"level":"ERROR"`) {
			t.Error(p.log.Text())
		}
	}
	if err := p.Wait(); err != nil {
		t.Errorf("the mailbox ended with %v", err)
	}
	if got := launch(t, dir).subjects(t); len(got) != 1 {
		t.Errorf("the mailbox kept %v", got)
	}
}

func TestTextsArriveWhereThePageIs(t *testing.T) {
	p := launch(t, t.TempDir())
	res, err := http.PostForm(p.http+"/2010-04-01/Accounts/AC1/Messages.json", url.Values{"To": {"+18883910959"}, "From": {"Doorward"}, "Body": {"Body\r\n"}})
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusCreated || len(p.subjects(t)) != 1 {
		t.Errorf("the text is answered %s", res.Status)
	}
}

func TestHelp(t *testing.T) {
	cmd := command(t, t.TempDir())
	cmd.Args = append(cmd.Args, "--help")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"DOORWARD_MAILBOX_DIR", ".doorward/mailbox", "DOORWARD_MAILBOX_SMTP_LISTEN", "localhost:2525",
		"DOORWARD_MAILBOX_HTTP_LISTEN", "localhost:8025", "DOORWARD_MAILBOX_KEEP", "10000",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("does not name %s:\n%s", want, out)
		}
	}
}

func TestAWrongStartSaysWhatToChange(t *testing.T) {
	for _, test := range []struct{ environment, says string }{
		{"DOORWARD_MAILBOX_SMTP=:25", "DOORWARD_MAILBOX_SMTP is not a variable"},
		{"DOORWARD_MAILBOX_KEEP=all", `DOORWARD_MAILBOX_KEEP: "all" is not a whole number`},
		{"DOORWARD_MAILBOX_KEEP=0", "0 is less than 1"},
		{"DOORWARD_MAILBOX_SMTP_LISTEN=nowhere", "DOORWARD_MAILBOX_SMTP_LISTEN"},
		{"DOORWARD_MAILBOX_HTTP_LISTEN=nowhere", "DOORWARD_MAILBOX_HTTP_LISTEN"},
		{"DOORWARD_MAILBOX_DIR=/dev/null/mailbox", "mkdir /dev/null"},
	} {
		out, err := command(t, t.TempDir(), test.environment).CombinedOutput()
		if err == nil || !strings.Contains(string(out), test.says) {
			t.Errorf("%s: %v, %s", test.environment, err, out)
		}
	}
	t.Run("an argument", func(t *testing.T) {
		cmd := command(t, t.TempDir())
		cmd.Args = append(cmd.Args, "serve")
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), `no argument "serve"`) {
			t.Errorf("the argument is answered with %v, %s", err, out)
		}
	})
}
