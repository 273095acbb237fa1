package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/deploy/e2e/harness"
)

// deployment is what is measured: standalone that was started for it, or one
// that runs already.
type deployment struct {
	key        e2e.Key
	keyFile    string
	pid        int                 // 0 if it ran already
	standalone *harness.Standalone // nil if it ran already
	starts     int
}

// runningDeployment is the one of an apikey.json.
func runningDeployment(keyFile string) (*deployment, error) {
	key, err := e2e.ReadKey(keyFile)
	return &deployment{key: key, keyFile: keyFile}, err
}

// settings are those of standalone that differ from the defaults: all load comes
// from one address and one tenant, and refusals are not to be measured.
var settings = []string{"DOORWARD_TENANT_RATE=0", "DOORWARD_USER_RATE=0", "DOORWARD_ADDRESS_RATE=0", "DOORWARD_ADDRESS_CONCURRENCY=100"}

// startStandalone starts it from an empty folder and returns the time until its
// first answer over TLS.
func startStandalone(ctx context.Context, bin, dir string) (*deployment, time.Duration, error) {
	d := &deployment{keyFile: filepath.Join(dir, "data", "apikey.json")}
	took, err := d.timed(ctx, func(ctx context.Context) (err error) {
		d.standalone, err = harness.StartStandalone(ctx, harness.Config{Dir: dir, Bin: bin, Settings: settings})
		return err
	})
	if err != nil {
		return nil, 0, errors.Join(err, d.stop(ctx))
	}
	return d, took, nil
}

// restart stops and starts it and returns the time until the first answer.
func (d *deployment) restart(ctx context.Context) (time.Duration, error) {
	if err := d.standalone.Stop(ctx); err != nil {
		return 0, err
	}
	return d.timed(ctx, d.standalone.Start)
}

// secondTenant makes another tenant, and returns its API key: standalone signs
// one up for a key that it does not know.
func (d *deployment) secondTenant(ctx context.Context) (e2e.Key, error) {
	first := d.key
	other := e2e.Key{ID: rand.Text(), Secret: rand.Text() + rand.Text(), BaseURL: first.BaseURL, CAFile: first.CAFile}
	if err := d.standalone.Stop(ctx); err != nil {
		return other, err
	}
	if err := other.Write(d.keyFile); err != nil {
		return other, err
	}
	if _, err := d.timed(ctx, d.standalone.Start); err != nil {
		return other, err
	}
	d.key = first
	return other, first.Write(d.keyFile)
}

func (d *deployment) stop(ctx context.Context) error {
	if d.standalone == nil {
		return nil
	}
	standalone := d.standalone
	d.standalone = nil
	err := standalone.Stop(context.WithoutCancel(ctx))
	if err != nil {
		standalone.Logs(os.Stderr)
	}
	return err
}

// timed starts standalone and returns the time until its first answer over TLS.
// It asks every few milliseconds, more often than the harness. It returns when
// standalone has written that it is ready: a stop before that is an interrupted
// start, which ends with another status.
func (d *deployment) timed(ctx context.Context, start func(context.Context) error) (took time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	began := time.Now()
	started := make(chan error, 1)
	go func() { started <- start(ctx) }()
	for ask := time.NewTicker(5 * time.Millisecond); err == nil && took == 0; {
		select {
		case err = <-started:
			took = time.Since(began)
			started <- err
		case <-ask.C:
			if answers(ctx, d.keyFile) {
				took = time.Since(began)
			}
		}
	}
	if err = <-started; err != nil {
		return took, err
	}
	d.starts++
	log := filepath.Join(filepath.Dir(filepath.Dir(d.keyFile)), "standalone.log")
	if err := e2e.AwaitFor(ctx, time.Minute, "standalone to be ready", func(context.Context) error {
		written, err := os.ReadFile(log)
		if times := bytes.Count(written, []byte("Doorward is ready.")); err == nil && times < d.starts {
			return fmt.Errorf("it was ready %d times, want %d", times, d.starts)
		}
		return err
	}); err != nil {
		return took, err
	}
	if d.key, err = e2e.ReadKey(d.keyFile); err != nil {
		return took, err
	}
	d.pid, err = child("doorward")
	return took, err
}

func answers(ctx context.Context, keyFile string) bool {
	key, err := e2e.ReadKey(keyFile)
	if err != nil {
		return false
	}
	client, err := e2e.NewClient(key)
	if err != nil {
		return false
	}
	defer client.HTTP.CloseIdleConnections()
	answer, err := client.Do(ctx, e2e.Request{Method: http.MethodGet, URL: "/tenants/current"})
	return err == nil && answer.Status == http.StatusFound
}
