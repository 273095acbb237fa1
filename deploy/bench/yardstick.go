package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"
)

// yardstick is the running baseline, seen from the generator.
type yardstick struct {
	baselineAddress
	rows    int
	meter   *meter
	tls     *tls.Config
	process *os.Process
	stdin   io.Closer
	ended   chan struct{} // closed when the process has been reaped
	status  error         // read only after ended
}

// startYardstick runs this program once more as the baseline, with a database
// in the folder, and returns when it serves.
func startYardstick(ctx context.Context, dir string, rows int) (*yardstick, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	process := exec.Command(self, baselineCommand, "-dir", filepath.Join(dir, "postgres"), "-rows", strconv.Itoa(rows))
	process.Stderr = os.Stderr
	process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for us; the end of its input is for it
	stdin, err := process.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start the baseline: %w", err)
	}
	stdout, err := process.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start the baseline: %w", err)
	}
	if err := process.Start(); err != nil {
		return nil, fmt.Errorf("start the baseline: %w", err)
	}
	y := &yardstick{rows: rows, meter: &meter{pid: process.Process.Pid}, process: process.Process, stdin: stdin, ended: make(chan struct{})}
	said := make(chan error, 1)
	go func() {
		defer close(y.ended)
		out := bufio.NewReader(stdout)
		said <- json.NewDecoder(out).Decode(&y.baselineAddress)
		_, _ = io.Copy(io.Discard, out) // it says nothing more
		y.status = process.Wait()
	}()
	select {
	case err = <-said:
	case <-ctx.Done():
		err = ctx.Err()
	case <-time.After(time.Minute):
		err = errors.New("it was not ready within a minute")
	}
	if err == nil {
		y.tls, err = trusting(y.Certificate)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the baseline: %w", err), y.stop())
	}
	return y, nil
}

func trusting(der []byte) (*tls.Config, error) {
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("read the baseline's certificate: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(certificate)
	return &tls.Config{RootCAs: roots, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS12}, nil
}

// stop ends the baseline by ending its input, and kills it if that is not heard.
func (y *yardstick) stop() error {
	if err := y.stdin.Close(); err != nil {
		return fmt.Errorf("stop the baseline: %w", err)
	}
	select {
	case <-y.ended:
		if y.status != nil {
			return fmt.Errorf("the baseline did not end well: %w", y.status)
		}
		return nil
	case <-time.After(20 * time.Second):
		_ = y.process.Kill() // it may have ended just now
		<-y.ended
		return errors.New("the baseline did not end within 20 s and was killed")
	}
}

// bare is the handler that only answers.
func (y *yardstick) bare() subject {
	return y.subject(bareName, func(uint64) string { return "/bare" })
}

// row is the handler that reads one row by its primary key.
func (y *yardstick) row() subject {
	return y.subject(rowName, func(n uint64) string { return "/row/" + strconv.FormatUint(scattered(n)%uint64(y.rows)+1, 10) })
}

// follow is the handler that reads one row and redirects, and the one that it
// redirects to, which reads it again.
func (y *yardstick) follow() subject {
	return subject{followName, func() line { return &followLine{newWire(y.Address, y.tls, patience), y} }}
}

// followLine does two requests one after the other.
type followLine struct {
	*wire
	yardstick *yardstick
}

func (l *followLine) do(n uint64) error {
	base := "https://" + l.yardstick.Address
	l.request.SetRequestURI(base + "/follow/" + strconv.FormatUint(scattered(n)%uint64(l.yardstick.rows)+1, 10))
	if err := l.send(fasthttp.StatusFound); err != nil {
		return err
	}
	l.request.SetRequestURI(base + string(l.answer.Header.Peek("Location")))
	return l.send(fasthttp.StatusOK)
}

// pair is the handler that inserts two rows in one transaction.
func (y *yardstick) pair() subject {
	return subject{pairName, func() line {
		w := newWire(y.Address, y.tls, patience)
		w.request.Header.SetMethod(fasthttp.MethodPost)
		w.request.Header.SetContentType("application/x-www-form-urlencoded")
		w.request.SetRequestURI("https://" + y.Address + "/pair")
		w.request.SetBodyString("grant_type=refresh_token")
		return &sameLine{w}
	}}
}

// sameLine sends the same request again and again.
type sameLine struct{ *wire }

func (l *sameLine) do(uint64) error { return l.send(fasthttp.StatusOK) }

// insert is the handler that inserts one row.
func (y *yardstick) insert() subject {
	return subject{insertName, func() line {
		w := newWire(y.Address, y.tls, patience)
		w.request.Header.SetMethod(fasthttp.MethodPost)
		w.request.Header.SetContentType("application/json")
		w.request.SetRequestURI("https://" + y.Address + "/insert")
		return &insertLine{w}
	}}
}

// insertLine inserts one account after the other.
type insertLine struct{ *wire }

func (l *insertLine) do(uint64) error {
	body, err := json.Marshal(anImport("insert"))
	if err != nil {
		return fmt.Errorf("encode the body: %w", err)
	}
	l.request.SetBodyRaw(body)
	return l.send(fasthttp.StatusCreated)
}

func (y *yardstick) subject(name string, path func(n uint64) string) subject {
	return subject{name, func() line {
		w := newWire(y.Address, y.tls, patience)
		w.request.SetRequestURI("https://" + y.Address + "/")
		return &plainLine{w, path}
	}}
}

// plainLine asks for one address after the other.
type plainLine struct {
	*wire
	path func(n uint64) string
}

func (l *plainLine) do(n uint64) error {
	l.request.URI().SetPath(l.path(n))
	return l.send(fasthttp.StatusOK)
}

// hashes lets the baseline verify passwords on all processors for a time.
func (y *yardstick) hashes(length time.Duration) (rate hashRate, used usage, err error) {
	w := newWire(y.Address, y.tls, length+patience)
	defer w.close()
	w.request.SetRequestURI("https://" + y.Address + "/hash/" + strconv.FormatInt(length.Milliseconds(), 10))
	began := time.Now()
	before, err := y.meter.read()
	if err != nil {
		return rate, used, err
	}
	if err := w.send(fasthttp.StatusOK); err != nil {
		return rate, used, fmt.Errorf("measure the bare password hash: %w", err)
	}
	after, err := y.meter.read()
	if err != nil {
		return rate, used, err
	}
	if err := json.Unmarshal(w.answer.Body(), &rate); err != nil {
		return rate, used, fmt.Errorf("measure the bare password hash: %w", err)
	}
	return rate, usage{after.minus(before), time.Since(began)}, nil
}

// scattered turns a count into numbers without an order, the same in every run.
func scattered(n uint64) uint64 {
	n = (n ^ n>>30) * 0xbf58476d1ce4e5b9 // the finalizer of splitmix64
	n = (n ^ n>>27) * 0x94d049bb133111eb
	return n ^ n>>31
}
