// Command bench measures the product on this machine and prints how it compares
// with bare handlers that run beside it. `go run ./deploy/bench -h` lists the
// flags; README.md explains the report.
//
// Begin with measure in measure.go, the whole run in order. operations.go lists
// the operations as data, load.go is the loop that sends them, client.go a
// connection, baseline.go the handlers for comparison, site.go what is measured,
// providers.go, ldap.go and peer.go the servers that it is measured with, page.go
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
	Accounts, Connections, Rounds, Large, People int

	Duration           time.Duration
	Only               []string
	Short, Distributed bool

	peer                          string        // file of BENCH_PEER
	logins                        int           // accounts that are logged in before the measurement: each costs a hash
	cold, warm, fewRounds         int           // fewRounds of what is measured over all rounds together
	idleFor, steadyFor, searchFor time.Duration // searchFor of each search of scale
	hotTenants, hotApplications   int           // applications of each tenant
}

// The defaults, and those of -short.
var (
	full = options{Accounts: 2000, Connections: 16, Duration: time.Second, Rounds: 9, Large: 1_000_000, People: 50_000,
		logins: 200, cold: 3, warm: 5, fewRounds: 3, idleFor: 20 * time.Second, steadyFor: 3 * time.Second,
		searchFor: time.Second, hotTenants: 100, hotApplications: 10}
	short = options{Accounts: 100, Connections: 16, Duration: 400 * time.Millisecond, Rounds: 3, Large: 10_000, People: 5000,
		logins: 16, cold: 1, warm: 1, fewRounds: 1, idleFor: 3 * time.Second, steadyFor: time.Second,
		searchFor: 50 * time.Millisecond, hotTenants: 2, hotApplications: 5}
)

// selectable are the names that -only chooses from.
func selectable() []string {
	return slices.Concat([]string{"starts", "idle", "memory"}, operationNames(),
		[]string{"open", "storm", "steady", "waiting", "page", "writers", "hot", "sync", "scale", "quota"})
}

// readOptions reads the flags. -short changes the defaults, not what is given.
func readOptions(args []string, out io.Writer) (options, error) {
	o, names := full, selectable()
	if slices.ContainsFunc(args, func(arg string) bool { return strings.TrimLeft(arg, "-") == "short" }) {
		o, names = short, slices.DeleteFunc(names, func(name string) bool { return name == "waiting" }) // it waits for timeouts
	}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.IntVar(&o.Accounts, "accounts", o.Accounts, "accounts to make before the measurement (-short: 100)")
	flags.IntVar(&o.Connections, "connections", o.Connections, "connections of the load generator, 1 to 64")
	flags.DurationVar(&o.Duration, "duration", o.Duration, "length of one run (-short: 400ms)")
	flags.IntVar(&o.Rounds, "rounds", o.Rounds, "how often every run is repeated, in turns (-short: 3)")
	only := flags.String("only", strings.Join(names, ","), "measure only these")
	flags.BoolVar(&o.Short, "short", false, "finish within two minutes once everything is compiled: coarse figures")
	flags.BoolVar(&o.Distributed, "distributed", false, "measure the distributed shape too; needs redis-server and Kafka")
	flags.IntVar(&o.Large, "large", o.Large, "accounts of the large directory of scale (-short: 10000)")
	flags.IntVar(&o.People, "people", o.People, "accounts of the LDAP directory of sync (-short: 5000)")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	o.peer, o.Only = os.Getenv("BENCH_PEER"), strings.Split(*only, ",")
	o.logins, o.fewRounds = min(o.logins, o.Accounts), min(o.Rounds, o.fewRounds)
	if !o.wants("starts") {
		o.cold, o.warm = 1, 0
	}
	err := o.check(flags.Args())
	o.Only = append(o.Only, o.needed()...)
	return o, err
}

// needed are the operations that others are compared with or follow from.
func (o options) needed() (all []string) {
	if o.wants("open", "storm") {
		all = append(all, "validate", "get")
	}
	if o.peer != "" {
		all = append(all, "validate", "client")
	}
	for _, operation := range slices.Backward(operations) { // what others are divided by stands before them
		if o.wants(operation.name) || slices.Contains(all, operation.name) {
			all = append(all, "bare", "row", operation.over)
		}
	}
	return all
}

// check refuses what cannot be measured. A tenant may have 100 requests in flight:
// more connections would measure refusals.
func (o options) check(arguments []string) error {
	for _, name := range o.Only {
		if !slices.Contains(selectable(), name) {
			return fmt.Errorf("-only names %q; it can be %s", name, strings.Join(selectable(), ", "))
		}
	}
	for _, limit := range []struct {
		name             string
		value, low, high int
	}{
		{"the number of arguments", len(arguments), 0, 0},
		{"-accounts", o.Accounts, 1, 1_000_000},
		{"-connections", o.Connections, 1, 64},
		{"-large", o.Large, smallDirectory, 100_000_000},
		{"-people", o.People, 1, 10_000_000},
		{"-duration in milliseconds", int(o.Duration.Milliseconds()), 100, 60_000},
		{"-rounds", o.Rounds, 1, 100},
	} {
		if limit.value < limit.low || limit.value > limit.high {
			return fmt.Errorf("%s is %d; it must be between %d and %d", limit.name, limit.value, limit.low, limit.high)
		}
	}
	return nil
}

func (o options) wants(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(o.Only, name) })
}

// seedCommand fills a directory of a running deployment and prints its address.
func seedCommand(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("bench seed", flag.ContinueOnError)
	keyFile := flags.String("apikey", cmp.Or(os.Getenv("DOORWARD_E2E_APIKEY"), ".doorward/apikey.json"), "`apikey.json` of the deployment")
	database := flags.String("database", os.Getenv("DATABASE_URL"), "`address` of its PostgreSQL; empty: that of a standalone")
	count := flags.Int("accounts", 1_000_000, "how many accounts to generate")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 || *count < 1 {
		return errors.New("bench seed takes flags only, and -accounts must be at least 1; -h lists them")
	}
	key, err := e2e.ReadKey(*keyFile)
	if err != nil {
		return err
	}
	s, err := openSite("", key, nil)
	if err != nil {
		return err
	}
	address, err := seed(ctx, s, *database, *keyFile, "seeded", *count)
	if err == nil {
		fmt.Println(address)
	}
	return err
}
