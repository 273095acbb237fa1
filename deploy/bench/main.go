// Command bench is the benchmark of the product: it measures it on this machine (load
// generator, performance report) and prints how it compares with bare handlers that run beside it.
// `go run ./deploy/bench -h` lists the flags; README.md explains the report.
//
// Begin with measure in measure.go, the whole run in order. operations.go lists the
// operations, openid.go those of an OpenID provider, load.go sends them (package loadgen), client.go a connection, baseline.go
// the handlers for comparison, system.go what is measured, peer.go another OAuth server,
// providers.go and ldap.go the servers of the generator that users log in at, page.go
// the sign-in page, scale.go the directories of different size, machine.go reads
// processor time, memory and control groups, and report.go prints.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/doorward/doorward/deploy/e2e"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C does not wait for the clean-up
	log.SetPrefix("bench ")
	log.SetFlags(log.Ltime | log.Lmsgprefix)
	if err := start(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		log.Fatal(err)
	}
}

func start(ctx context.Context, args []string) error {
	switch {
	case len(args) == 6 && args[0] == baselineCommand:
		return serveBaseline(ctx, args[1], args[2], args[3], args[4], args[5])
	case len(args) > 0 && args[0] == "seed":
		return seedCommand(ctx, args[1:])
	}
	o, err := readOptions(args, os.Stderr)
	if err != nil {
		return err
	}
	report, err := measure(ctx, o)
	if report == nil {
		return err
	}
	report.print(os.Stdout) // also when something that was started did not stop well
	return err
}

// options say what is measured and for how long.
type options struct {
	accounts, connections, rounds, large, people int // flags

	duration    time.Duration
	distributed bool
	only        []string
	peer        string // file of BENCH_PEER

	logins                        int // accounts that are logged in before the measurement: each costs a hash
	coldStarts, warmStarts        int
	fewRounds                     int           // of measurements that need few
	idleFor, steadyFor, searchFor time.Duration // searchFor of each search of scale
	hotTenants, hotApplications   int           // applications of each tenant
	seldomAccounts                int           // of all tenants together
}

// The defaults, and those of -short.
var (
	fullOptions = options{accounts: 2000, connections: 16, duration: time.Second, rounds: 9, large: 1_000_000,
		people: 50_000,
		logins: 200, coldStarts: 3, warmStarts: 5, fewRounds: 3, idleFor: 20 * time.Second, steadyFor: 3 * time.Second,
		searchFor: time.Second, hotTenants: 100, hotApplications: 10, seldomAccounts: 5000}
	shortOptions = options{accounts: 100, connections: 16, duration: 400 * time.Millisecond, rounds: 3, large: 10_000,
		people: 5000,
		logins: 16, coldStarts: 1, warmStarts: 1, fewRounds: 1, idleFor: 10 * time.Second, steadyFor: time.Second,
		searchFor: 50 * time.Millisecond, hotTenants: 2, hotApplications: 5, seldomAccounts: 600}
)

// selectable are the names that -only chooses from.
func selectable() []string {
	return slices.Concat([]string{"starts", "idle", "memory"}, productOperationNames(),
		[]string{"open", "storm", "steady", "waiting", "page", "writers", "hot", "saves", "sync", "scale", "quota"})
}

// readOptions reads the flags. -short changes the defaults, not what is given.
func readOptions(args []string, out io.Writer) (options, error) {
	o := fullOptions
	o.only = selectable()
	if slices.ContainsFunc(args, func(arg string) bool { return strings.TrimLeft(arg, "-") == "short" }) {
		o = shortOptions
		o.only = slices.DeleteFunc(selectable(), func(name string) bool { return name == "waiting" }) // it waits for timeouts
	}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(out)
	number := func(value *int, name string, low, high int, usage string) {
		flags.Func(name, fmt.Sprintf("%s (default %d)", usage, *value), func(text string) (err error) {
			if *value, err = strconv.Atoi(text); err == nil && (*value < low || *value > high) {
				err = fmt.Errorf("it must be between %d and %d", low, high)
			}
			return err
		})
	}
	number(&o.accounts, "accounts", 1, 1_000_000, "accounts to make before the measurement (-short: 100)")
	number(&o.connections, "connections", 1, 64, "connections of the load generator, 1 to 64: a tenant may have 100 requests in flight")
	number(&o.rounds, "rounds", 1, 100, "how many times every run is repeated, in turns (-short: 3)")
	number(&o.large, "large", smallDirectory, 100_000_000, "accounts of the large directory of scale (-short: 10000)")
	number(&o.people, "people", 1, 10_000_000, "accounts of the LDAP directory of sync (-short: 5000)")
	flags.DurationVar(&o.duration, "duration", o.duration, "length of one run, 100ms to 1m (-short: 400ms)")
	flags.Func("only", "measure only these (default "+strings.Join(o.only, ",")+")", func(text string) error {
		o.only = strings.Split(text, ",")
		for _, name := range o.only {
			if !slices.Contains(selectable(), name) {
				return fmt.Errorf("%q is none of %s", name, strings.Join(selectable(), ", "))
			}
		}
		return nil
	})
	flags.Bool("short", false, "finish within two minutes once everything is compiled: coarse figures")
	flags.BoolVar(&o.distributed, "distributed", false,
		"measure a distributed deployment too; needs redis-server and Kafka")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.duration < 100*time.Millisecond || o.duration > time.Minute || flags.NArg() > 0 {
		return o, errors.New("bench takes flags only, and -duration is between 100ms and 1m; -h lists them")
	}
	o.peer, o.logins, o.fewRounds = os.Getenv("BENCH_PEER"), min(o.logins, o.accounts), min(o.rounds, o.fewRounds)
	if !o.wants("starts") {
		o.coldStarts, o.warmStarts = 1, 0
	}
	o.only = append(o.only, o.needed()...)
	return o, nil
}

// needed are the operations that others are compared with or follow from.
func (o options) needed() (names []string) {
	if o.wants("open", "storm") {
		names = append(names, "validate", "get")
	}
	if o.peer != "" {
		names = append(names, peerOperationNames()...)
	}
	for _, operation := range slices.Backward(productOperations) { // what others are divided by stands before them
		if o.wants(operation.name) || slices.Contains(names, operation.name) {
			names = append(names, "bare", "row", operation.ratioTo)
			if strings.HasPrefix(operation.name, "openid-") {
				names = append(names, "es256", "rs256")
			}
		}
	}
	return names
}

func (o options) wants(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(o.only, name) })
}

// seedCommand fills a directory of a running deployment and prints its address.
func seedCommand(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("bench seed", flag.ContinueOnError)
	keyFile := flags.String("apikey", cmp.Or(os.Getenv("DOORWARD_E2E_APIKEY"), ".doorward/apikey.json"),
		"`apikey.json` of the deployment")
	database := flags.String("database", os.Getenv("DATABASE_URL"),
		"`address` of its PostgreSQL; empty: that of a standalone")
	count := flags.Int("accounts", 1_000_000, "how many accounts to generate")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 || *count < 1 {
		return errors.New("bench seed takes flags only, and -accounts must be at least 1; -h lists them")
	}
	client, err := e2e.OpenClient(*keyFile)
	if err != nil {
		return err
	}
	address, err := seed(ctx, newSystem("", client, nil), *database, *keyFile, "seeded", *count)
	if err == nil {
		fmt.Println(address)
	}
	return err
}
