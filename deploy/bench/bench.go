package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/doorward/doorward/deploy/e2e/harness"
)

// run makes the whole measurement and leaves nothing running.
func run(ctx context.Context, o Options) (report *Report, err error) {
	began := time.Now()
	tell := func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, "bench %5.1f s  %s\n", time.Since(began).Seconds(), fmt.Sprintf(format, args...))
	}
	report = newReport(o, began)
	dir, remove, err := harness.Folder()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, remove()) }()

	var d *deployment
	if o.KeyFile == "" {
		d, report.Standalone, err = startStandalone(ctx, dir, o, tell)
	} else {
		d, err = runningDeployment(o.KeyFile)
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.stop(context.WithoutCancel(ctx))) }()
	report.BaseURL = d.key.BaseURL

	var wanted []operation
	for _, operation := range operations {
		if o.wants(operation.name) {
			wanted = append(wanted, operation)
		}
	}
	if len(wanted) > 0 {
		if err := compare(ctx, o, dir, d, wanted, report, tell); err != nil {
			return nil, err
		}
	}
	if o.wants(scaleName) {
		if report.Scale, err = scale(ctx, o, d, tell); err != nil {
			return nil, fmt.Errorf("compare directories: %w", err)
		}
	}
	if report.Standalone != nil {
		if report.Standalone.AfterLoad, report.Standalone.Peak, err = d.memory(); err != nil {
			return nil, err
		}
	}
	if d.standalone != nil && report.refused() {
		d.standalone.Logs(os.Stderr) // the reason may stand there, and nowhere else once the folder is gone
	}
	report.Took = time.Since(began).Seconds()
	return report, nil
}

// compare fills a site with accounts, starts the baseline beside it, and lets
// them run in turns.
func compare(ctx context.Context, o Options, dir string, d *deployment, wanted []operation, report *Report, tell func(string, ...any)) (err error) {
	s, err := openSite(ctx, d.key)
	if err != nil {
		return fmt.Errorf("make the application to measure: %w", err)
	}
	if d.standalone == nil {
		defer func() { err = errors.Join(err, s.remove(context.WithoutCancel(ctx))) }()
	}
	if err := s.fill(ctx, o.Accounts, o.Tokens, tell); err != nil {
		return fmt.Errorf("seed accounts: %w", err)
	}
	folder := filepath.Join(dir, "baseline")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("make the baseline's folder: %w", err)
	}
	y, err := startYardstick(ctx, folder, o.Accounts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, y.stop()) }()
	if err := report.describe(s, y); err != nil {
		return err
	}
	c := &comparison{options: o, yardstick: y, site: s, meter: d.meter, operations: wanted, tell: tell}
	var closed map[string]*series
	if o.closed() {
		if closed, err = c.closedRounds(ctx); err != nil {
			return err
		}
		report.addClosed(wanted, closed)
	}
	if o.open() {
		open, err := c.openRounds(ctx, closed)
		if err != nil {
			return err
		}
		report.addOpen(wanted, open)
	}
	if o.open() && o.closed() {
		if report.Storms, err = c.stormRounds(ctx, closed); err != nil {
			return err
		}
	}
	report.Created = int(created.Load())
	return nil
}
