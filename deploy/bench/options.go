package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// keyEnv names the apikey.json of a deployment that runs already, as it does
// for the end-to-end scenarios.
const keyEnv = "DOORWARD_E2E_APIKEY"

// What -only chooses from: the operations, and the starts of standalone.
const startsName = "starts"

// maxConnections stays below the 100 requests that a tenant may have in flight
// by default: a measurement of refusals would be of no use.
const maxConnections = 64

// Options say what is measured and for how long.
type Options struct {
	Accounts    int           `json:"accounts"`
	Connections int           `json:"connections"`
	Duration    time.Duration `json:"-"`
	Rounds      int           `json:"rounds"`
	Loop        string        `json:"loop"`
	Rate        float64       `json:"rate"`
	Only        []string      `json:"only"`
	Short       bool          `json:"short"`

	// Tokens is how many accounts are logged in before the measurement. Each
	// login costs a password hash, and more of them would prove nothing.
	Tokens int `json:"tokens"`

	Large       int      `json:"large"`
	Directories []string `json:"directories"`
	Database    string   `json:"-"`

	KeyFile string `json:"-"`
	JSON    string `json:"-"`
}

// readOptions reads the flags. -short changes the defaults, not what is given.
func readOptions(args []string, out io.Writer) (Options, error) {
	var o Options
	var only, directories string
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.IntVar(&o.Accounts, "accounts", 2000, "accounts to seed before the measurement (-short: 100)")
	flags.IntVar(&o.Connections, "connections", 16, fmt.Sprintf("connections of the load generator, 1 to %d", maxConnections))
	flags.DurationVar(&o.Duration, "duration", time.Second, "length of one run (-short: 800ms)")
	flags.IntVar(&o.Rounds, "rounds", 9, "how often every run is repeated, in turns (-short: 3)")
	flags.StringVar(&o.Loop, "loop", "both", "closed: send when answered; open: send at a fixed rate; both")
	flags.Float64Var(&o.Rate, "rate", 0, "operations a second of the open loop; 0: half of what the closed loop reached")
	flags.StringVar(&only, "only", "", "measure only these, separated by commas: "+strings.Join(choices(), ", "))
	flags.BoolVar(&o.Short, "short", false, "finish within 100 seconds once everything is compiled: coarse figures")
	flags.StringVar(&o.KeyFile, "apikey", os.Getenv(keyEnv), "`apikey.json` of a deployment on this machine to measure, instead of starting standalone (also by "+keyEnv+")")
	flags.IntVar(&o.Large, "large", 1_000_000, "accounts of the large directory of scale (-short: 20000)")
	flags.StringVar(&directories, "directories", "", "addresses of a small and a large directory that bench seed filled, for scale, separated by a comma; empty: it fills two")
	flags.StringVar(&o.Database, "database", os.Getenv(databaseEnv), "`address` of the PostgreSQL of -apikey, for scale; empty: the one of a standalone with its data beside the apikey.json (also by "+databaseEnv+")")
	flags.StringVar(&o.JSON, "json", "", "`file` to write the report to as JSON")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q; -h lists the flags", flags.Arg(0))
	}
	o.Tokens = 200
	if o.Short {
		o.Tokens = 24
		given := map[string]bool{}
		flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
		shorten := func(name string, change func()) {
			if !given[name] {
				change()
			}
		}
		shorten("accounts", func() { o.Accounts = 100 })
		shorten("duration", func() { o.Duration = 800 * time.Millisecond })
		shorten("rounds", func() { o.Rounds = 3 })
		shorten("large", func() { o.Large = 20_000 })
	}
	o.Tokens = min(o.Tokens, o.Accounts)
	o.Only = choices()
	if o.KeyFile != "" && o.Database == "" {
		o.Only = slices.DeleteFunc(o.Only, func(name string) bool { return name == scaleName }) // its database may be out of reach
	}
	if directories != "" {
		o.Directories = strings.Split(directories, ",")
	}
	if only != "" {
		o.Only = strings.Split(only, ",")
	}
	if !o.wants("validate") && !o.wants("refresh") {
		o.Tokens = 0
	}
	return o, o.check()
}

func choices() []string { return append([]string{startsName, scaleName}, operationNames()...) }

func (o Options) check() error {
	for _, name := range o.Only {
		if !slices.Contains(choices(), name) {
			return fmt.Errorf("-only names %q; it can be %s", name, strings.Join(choices(), ", "))
		}
	}
	switch {
	case o.Accounts < 1 || o.Accounts > 1_000_000:
		return errors.New("-accounts must be between 1 and 1000000")
	case o.Connections < 1 || o.Connections > maxConnections:
		return fmt.Errorf("-connections must be between 1 and %d: a tenant may have 100 requests in flight", maxConnections)
	case o.Large < smallDirectory || o.Large > 100_000_000:
		return fmt.Errorf("-large must be between %d and 100000000", smallDirectory)
	case len(o.Directories) != 0 && (len(o.Directories) != 2 || o.KeyFile == ""):
		return errors.New("-directories names a small and a large one, of the deployment of -apikey")
	case o.Duration < 100*time.Millisecond || o.Duration > time.Minute:
		return errors.New("-duration must be between 100ms and 1m")
	case o.Rounds < 1 || o.Rounds > 100:
		return errors.New("-rounds must be between 1 and 100")
	case !slices.Contains([]string{"closed", "open", "both"}, o.Loop):
		return fmt.Errorf("-loop is %q; it can be closed, open or both", o.Loop)
	case o.Rate < 0 || o.Rate > 100_000:
		return errors.New("-rate must be between 0 and 100000")
	case o.Loop == "open" && o.Rate == 0:
		return errors.New("-loop open needs a -rate: there is no closed loop to take half of")
	case o.KeyFile != "" && len(o.Only) == 1 && o.Only[0] == startsName:
		return errors.New("-only starts measures standalone, which -apikey says not to start")
	}
	return nil
}

func (o Options) wants(name string) bool { return slices.Contains(o.Only, name) }
func (o Options) closed() bool           { return o.Loop != "open" }
func (o Options) open() bool             { return o.Loop != "closed" }

// perSearch is how long scale asks the same of both directories.
func (o Options) perSearch() time.Duration {
	if o.Short {
		return o.Duration / 8
	}
	return o.Duration
}

// warm is the head of every run that does not count: connections are made and
// caches filled in it.
func (o Options) warm() time.Duration { return o.Duration / 8 }
