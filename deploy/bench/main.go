// Command bench measures the product on this machine and prints how it compares
// with bare handlers that run beside it. `go run ./deploy/bench -h` lists the
// flags; README.md explains the report.
//
// Begin with measure in measure.go, the whole run in order. operations.go lists
// the operations as data, load.go is the loop that sends them, client.go a
// connection, baseline.go the handlers for comparison, site.go what is measured,
// scale.go the directories of different size, machine.go reads processor time,
// memory and control groups, and report.go prints.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
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
	err := start(ctx, os.Args[1:])
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func start(ctx context.Context, args []string) error {
	switch {
	case len(args) == 6 && args[0] == baselineCommand:
		return serveBaseline(ctx, args[1], args[2], args[3], args[4], args[5])
	case len(args) > 0 && args[0] == "seed":
		return seedCommand(ctx, args[1:], os.Stdout)
	}
	o, err := readOptions(args, os.Stderr)
	if err != nil {
		return err
	}
	report, err := measure(ctx, o, newLogger())
	if err != nil {
		return err
	}
	report.print(os.Stdout)
	if o.json != "" {
		return report.write(o.json)
	}
	return nil
}

// logger reports progress.
type logger func(format string, args ...any)

func newLogger() logger {
	began := time.Now()
	return func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, "bench %5.1f s  %s\n", time.Since(began).Seconds(), fmt.Sprintf(format, args...))
	}
}

// Environment variables: those of the end-to-end scenarios and of the directory
// service, which mean the same here, and the file of another server to compare with.
const (
	keyEnv      = "DOORWARD_E2E_APIKEY"
	databaseEnv = "DATABASE_URL"
	peerEnv     = "BENCH_PEER"
)

// maxConnections stays below the 100 requests that a tenant may have in flight
// by default: a measurement of refusals would be of no use.
const maxConnections = 64

// options say what is measured and for how long.
type options struct {
	Accounts    int           `json:"accounts"`
	Connections int           `json:"connections"`
	Duration    time.Duration `json:"durationNanos"`
	Rounds      int           `json:"rounds"`
	Only        []string      `json:"only"`
	Short       bool          `json:"short"`
	Distributed bool          `json:"distributed"`
	Large       int           `json:"large"`
	Directories []string      `json:"directories,omitempty"`

	database, keyFile, json     string
	logins                      int // accounts that are logged in before the measurement: each costs a hash
	cold, warm, fewRounds       int // fewRounds of what is measured over all rounds together
	idleFor, steadyFor          time.Duration
	hotTenants, hotApplications int // applications of each tenant
}

func operationNames() (all []string) {
	for _, o := range operations {
		all = append(all, o.name)
	}
	return all
}

// selectable are the names that -only chooses from.
func selectable() []string {
	return slices.Concat([]string{"starts", "idle", "memory"}, operationNames(),
		[]string{"open", "storm", "steady", "page", "writers", "hot", "scale", "quota"})
}

// readOptions reads the flags. -short changes the defaults, not what is given.
func readOptions(args []string, out io.Writer) (o options, err error) {
	o.Short = slices.ContainsFunc(args, func(arg string) bool { return strings.TrimLeft(arg, "-") == "short" })
	o.logins, o.cold, o.warm, o.idleFor, o.steadyFor, o.hotTenants, o.hotApplications = 200, 3, 5, 20*time.Second, 3*time.Second, 100, 10
	accounts, duration, rounds, large := 2000, time.Second, 9, 1_000_000
	if o.Short {
		o.logins, o.cold, o.warm, o.idleFor, o.steadyFor, o.hotTenants, o.hotApplications = 16, 1, 1, 3*time.Second, time.Second, 2, 5
		accounts, duration, rounds, large = 100, 400*time.Millisecond, 3, 10_000
	}
	var only, directories string
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.IntVar(&o.Accounts, "accounts", accounts, "accounts to make before the measurement (-short: 100)")
	flags.IntVar(&o.Connections, "connections", 16, fmt.Sprintf("connections of the load generator, 1 to %d", maxConnections))
	flags.DurationVar(&o.Duration, "duration", duration, "length of one run (-short: 400ms)")
	flags.IntVar(&o.Rounds, "rounds", rounds, "how often every run is repeated, in turns (-short: 3)")
	flags.StringVar(&only, "only", "", "measure only these, separated by commas: "+strings.Join(selectable(), ", "))
	flags.BoolVar(&o.Short, "short", false, "finish within two minutes once everything is compiled: coarse figures")
	flags.BoolVar(&o.Distributed, "distributed", false, "measure the distributed shape too; needs redis-server and Kafka")
	flags.StringVar(&o.keyFile, "apikey", os.Getenv(keyEnv), "`apikey.json` of a running deployment to measure (also by "+keyEnv+")")
	flags.IntVar(&o.Large, "large", large, "accounts of the large directory of scale (-short: 10000)")
	flags.StringVar(&directories, "directories", "", "`small,large`: addresses of directories that bench seed filled, for scale")
	flags.StringVar(&o.database, "database", os.Getenv(databaseEnv), "`address` of PostgreSQL, for scale (also by "+databaseEnv+")")
	flags.StringVar(&o.json, "json", "", "`file` to write the report to as JSON")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q; -h lists the flags", flags.Arg(0))
	}
	o.logins, o.fewRounds = min(o.logins, o.Accounts), min(o.Rounds, 3)
	if o.Short {
		o.fewRounds = 1
	}
	if !slices.Contains(strings.Split(only, ","), "starts") && only != "" {
		o.cold, o.warm = 1, 0
	}
	if directories != "" {
		o.Directories = strings.Split(directories, ",")
	}
	o.Only = selectable()
	if o.keyFile != "" && o.database == "" && len(o.Directories) == 0 { // its database may be out of reach
		o.Only = slices.DeleteFunc(o.Only, func(name string) bool { return name == "scale" })
	}
	if only != "" {
		o.Only = strings.Split(only, ",")
	}
	return o, o.check()
}

func (o options) check() error {
	for _, name := range o.Only {
		if !slices.Contains(selectable(), name) {
			return fmt.Errorf("-only names %q; it can be %s", name, strings.Join(selectable(), ", "))
		}
	}
	switch {
	case o.Accounts < 1 || o.Accounts > 1_000_000:
		return errors.New("-accounts must be between 1 and 1000000")
	case o.Connections < 1 || o.Connections > maxConnections:
		return fmt.Errorf("-connections must be between 1 and %d: a tenant may have 100 requests in flight", maxConnections)
	case o.Large < smallDirectory || o.Large > 100_000_000:
		return fmt.Errorf("-large must be between %d and 100000000", smallDirectory)
	case len(o.Directories) != 0 && (len(o.Directories) != 2 || o.keyFile == ""):
		return errors.New("-directories names a small and a large one, of the deployment of -apikey")
	case o.Duration < 100*time.Millisecond || o.Duration > time.Minute:
		return errors.New("-duration must be between 100ms and 1m")
	case o.Rounds < 1 || o.Rounds > 100:
		return errors.New("-rounds must be between 1 and 100")
	case o.keyFile != "" && o.Distributed:
		return errors.New("-distributed starts processes, and -apikey says not to")
	}
	return nil
}

func (o options) wants(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(o.Only, name) })
}

// seedCommand fills a directory of a running deployment and prints its address.
func seedCommand(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("bench seed", flag.ContinueOnError)
	keyFile := flags.String("apikey", cmp.Or(os.Getenv(keyEnv), ".doorward/apikey.json"), "`apikey.json` of the deployment")
	database := flags.String("database", os.Getenv(databaseEnv), "`address` of its PostgreSQL; empty: that of a standalone")
	count := flags.Int("accounts", 1_000_000, "how many accounts to generate")
	name := flags.String("name", "seeded "+time.Now().UTC().Format(time.DateTime), "name of the directory that is made for them")
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
	s, err := openSite(ctx, "", key)
	if err != nil {
		return err
	}
	address, err := seed(ctx, s, *database, *keyFile, *name, *count, newLogger())
	if err == nil {
		fmt.Fprintln(out, address)
	}
	return err
}
