package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/deploy/e2e/harness"
)

// What standalone is meant to reach. It is printed beside the figures; nothing
// fails because of it.
const (
	coldTarget   = 5 * time.Second
	warmTarget   = time.Second
	memoryTarget = 100 << 20
)

// settling is how long a fresh process is left alone before its memory counts
// as that of an idle one.
const settling = 2 * time.Second

// startLimit bounds one start, compiling not included.
const startLimit = 2 * time.Minute

// deployment is what is measured: standalone that was started for it, or one
// that runs already.
type deployment struct {
	key        e2e.Key
	keyFile    string
	meter      *meter
	standalone *harness.Standalone // nil if it ran already
}

// StandaloneFigures are those of the one-process shape.
type StandaloneFigures struct {
	Cold      []float64 `json:"coldStartsSeconds"`
	Warm      []float64 `json:"warmStartsSeconds"`
	Idle      int64     `json:"residentIdleBytes"`
	AfterLoad int64     `json:"residentAfterLoadBytes"`
	Peak      int64     `json:"residentPeakBytes"`
}

// startStandalone compiles standalone and starts it from an empty data folder
// and again from a full one, several times. The last one is left running.
func startStandalone(ctx context.Context, dir string, o Options, tell func(string, ...any)) (d *deployment, f *StandaloneFigures, err error) {
	tell("compiling standalone")
	build, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	bin, err := harness.Build(build, dir, harness.StandalonePackages...)
	if err != nil {
		return nil, nil, err
	}
	cold, warm := 3, 5
	if o.Short {
		cold, warm = 1, 3
	}
	if !o.wants(startsName) {
		cold, warm = 1, 0
	}
	f = &StandaloneFigures{}
	d = &deployment{}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.stop(context.WithoutCancel(ctx)))
		}
	}()
	var log string
	for n := range cold {
		if n > 0 {
			if err := settled(ctx, log, 1); err != nil {
				return d, f, err
			}
		}
		if err := d.stop(ctx); err != nil {
			return d, f, err
		}
		config := harness.Config{Dir: filepath.Join(dir, "standalone"+strconv.Itoa(n)), Bin: bin}
		log = filepath.Join(config.Dir, "standalone.log")
		took, err := timed(ctx, filepath.Join(config.Dir, "data", "apikey.json"), func(ctx context.Context) error {
			var err error
			d.standalone, err = harness.StartStandalone(ctx, config)
			return err
		})
		if err != nil {
			return d, f, err
		}
		f.Cold = append(f.Cold, took.Seconds())
		tell("cold start %d of %d: %.2f s", n+1, cold, took.Seconds())
	}
	if err := d.find(); err != nil {
		return d, f, err
	}
	if err := await(ctx, time.Now().Add(settling)); err != nil {
		return d, f, err
	}
	if f.Idle, _, err = d.memory(); err != nil {
		return d, f, err
	}
	for n := range warm {
		if err := settled(ctx, log, n+1); err != nil {
			return d, f, err
		}
		if err := d.standalone.Stop(ctx); err != nil {
			return d, f, err
		}
		took, err := timed(ctx, d.standalone.KeyFile(), d.standalone.Start)
		if err != nil {
			return d, f, err
		}
		f.Warm = append(f.Warm, took.Seconds())
		tell("warm start %d of %d: %.2f s", n+1, warm, took.Seconds())
	}
	return d, f, d.find()
}

// runningDeployment is the one of an apikey.json.
func runningDeployment(keyFile string) (*deployment, error) {
	key, err := e2e.ReadKey(keyFile)
	return &deployment{key: key, keyFile: keyFile, meter: &meter{}}, err
}

// find reads the key and looks for the process, which is another one after
// every start.
func (d *deployment) find() (err error) {
	d.keyFile = d.standalone.KeyFile()
	if d.key, err = e2e.ReadKey(d.keyFile); err != nil {
		return err
	}
	pid, err := child("doorward")
	d.meter = &meter{pid: pid}
	return err
}

// memory is zero where the system does not tell.
func (d *deployment) memory() (now, highest int64, err error) {
	if now, highest, err = memory(d.meter.pid); errors.Is(err, errNoMemory) {
		return 0, 0, nil
	}
	return now, highest, err
}

// stop ends what was started here.
func (d *deployment) stop(ctx context.Context) error {
	if d.standalone == nil {
		return nil
	}
	standalone := d.standalone
	d.standalone = nil
	err := standalone.Stop(ctx)
	if err != nil {
		standalone.Logs(os.Stderr)
	}
	return err
}

// timed starts a process and returns the time until its first answer over TLS.
// It looks for it every few milliseconds: the harness, which is not in a hurry,
// rests longer between two looks.
func timed(ctx context.Context, keyFile string, start func(context.Context) error) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	began := time.Now()
	started := make(chan error, 1)
	go func() { started <- start(ctx) }()
	var answered time.Duration
	for look := time.NewTicker(5 * time.Millisecond); ; {
		select {
		case err := <-started:
			look.Stop()
			if answered == 0 {
				answered = time.Since(began)
			}
			return answered, err
		case <-look.C:
			if answered == 0 && answers(ctx, keyFile) {
				answered = time.Since(began)
			}
		}
	}
}

// settled waits until standalone has told as often as it was started that it is
// ready. It answers a little earlier, and a stop in between is an interrupted
// start, which ends with another status.
func settled(ctx context.Context, log string, starts int) error {
	return e2e.AwaitFor(ctx, startLimit, "standalone to say that it is ready", func(context.Context) error {
		said, err := os.ReadFile(log)
		if err != nil {
			return err
		}
		if times := bytes.Count(said, []byte("Doorward is ready.")); times < starts {
			return fmt.Errorf("it said so %d times, want %d", times, starts)
		}
		return nil
	})
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
