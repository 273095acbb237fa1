// Command doorward runs the whole product as one process. With a subcommand it
// does one thing to the data of a deployment instead, of this shape or of the
// distributed one (docs/operations.md).
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/doorward/doorward/deploy/standalone/app"
	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/run"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	root := commands()
	if len(os.Args) == 1 || os.Args[1][0] == '-' {
		stop()
		run.Main("doorward", app.About, app.FromEnv, app.Run)
	}
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "doorward:", err)
		os.Exit(1)
	}
}

// source is the environment that the commands read.
var source = env.New(os.Environ())

func commands() *cobra.Command {
	root := &cobra.Command{Use: "doorward", SilenceErrors: true, SilenceUsage: true}
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(migrate(), doctor(), deadLetters(), keys(), admin(), tenant(), eventCommands())
	return root
}

// reads makes the help of a command list its variables.
func reads(command *cobra.Command, variables func(*env.Source)) *cobra.Command {
	usual := command.HelpFunc()
	command.SetHelpFunc(func(c *cobra.Command, args []string) {
		usual(c, args)
		_, _ = fmt.Fprint(c.OutOrStdout(),
			"\nVariables of the environment; without a database among them the data folder, DOORWARD_DATA_DIR, is used:\n\n")
		variables(source)
		source.Help(c.OutOrStdout())
	})
	return command
}

func migrate() *cobra.Command {
	return reads(&cobra.Command{
		Use: "migrate", Short: "migrate the schemas of all services and exit", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return app.Migrate(c.Context(), source, c.OutOrStdout()) },
	}, app.MigrateVariables)
}

func doctor() *cobra.Command {
	var asJSON bool
	command := &cobra.Command{
		Use: "doctor", Short: "check a deployment and say what to do; exit status 1 when a check failed", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return app.Doctor(c.Context(), source, asJSON, c.OutOrStdout())
		},
	}
	command.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return reads(command, app.DoctorVariables)
}

func deadLetters() *cobra.Command {
	parent := &cobra.Command{Use: "deadletters", Short: "events that could not be handled"}
	var chosen app.Selection
	var all bool
	add := func(name, short string, run func(*cobra.Command) error) *cobra.Command {
		command := &cobra.Command{Use: name, Short: short, Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error { return run(c) }}
		command.Flags().StringVar(&chosen.Topic, "topic", "", "of this topic only, such as doorward.directory")
		command.Flags().StringVar(&chosen.Group, "group", "", "of this consumer group only, such as doorward.notification")
		command.Flags().StringVar(&chosen.ID, "id", "", "the event with this id only")
		parent.AddCommand(reads(command, app.DeadLetterVariables))
		return command
	}
	resolve := func(retry bool) func(*cobra.Command) error {
		return func(c *cobra.Command) error {
			if (chosen == app.Selection{}) && !all {
				return errors.New("choose by --topic, --group or --id, or say --all")
			}
			return app.ResolveDeadLetters(c.Context(), source, retry, chosen, c.OutOrStdout())
		}
	}
	add("list", "list them, one JSON object a line", func(c *cobra.Command) error {
		return app.ListDeadLetters(c.Context(), source, chosen, c.OutOrStdout())
	})
	add("retry", "send them to their consumers again", resolve(true)).Flags().BoolVar(&all, "all", false, "all of them")
	add("drop", "remove them from the list without a retry", resolve(false)).Flags().BoolVar(&all, "all", false, "all of them")
	return parent
}

func keys() *cobra.Command {
	parent := &cobra.Command{Use: "keys", Short: "master keys"}
	parent.AddCommand(reads(&cobra.Command{
		Use: "rotate", Args: cobra.NoArgs,
		Short: "encrypt all secrets again under the first master key; after an interruption, run it again to continue",
		RunE:  func(c *cobra.Command, _ []string) error { return app.RotateKeys(c.Context(), source, c.OutOrStdout()) },
	}, app.RotateVariables))
	return parent
}

// required adds a flag that a call of the command must have.
func required(command *cobra.Command, value *string, name, usage string) {
	command.Flags().StringVar(value, name, "", usage)
	_ = command.MarkFlagRequired(name) // fails for a flag that does not exist
}

func admin() *cobra.Command {
	parent := &cobra.Command{Use: "admin", Short: "access of administrators"}
	var tenant string
	key := &cobra.Command{
		Use: "key", Short: "create an administrator's API key in the database", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return app.AdminKey(c.Context(), source, tenant, c.OutOrStdout())
		},
	}
	required(key, &tenant, "tenant", "key of the tenant, such as clever-otter")
	parent.AddCommand(reads(key, app.AdminKeyVariables))
	return parent
}

func tenant() *cobra.Command {
	parent := &cobra.Command{Use: "tenant", Short: "export, import and move a tenant"}
	var key, to, from, folder string
	export := &cobra.Command{
		Use: "export", Short: "export a tenant to a folder, encrypted; after an interruption, run it again to continue", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return app.ExportTenant(c.Context(), source, key, to, folder, c.OutOrStdout())
		},
	}
	required(export, &key, "tenant", "key of the tenant, such as clever-otter")
	required(export, &to, "recipient", "age public key that the files are encrypted for, such as age1…")
	into := &cobra.Command{
		Use: "import", Short: "import a tenant into this deployment; after an interruption, run it again to continue", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			identity, err := os.ReadFile(from)
			if err != nil {
				return err
			}
			return app.ImportTenant(c.Context(), source, folder, string(identity), c.OutOrStdout())
		},
	}
	required(into, &from, "identity", "file of the age private key, as doorward tenant key writes it")
	for _, command := range []*cobra.Command{export, into} {
		required(command, &folder, "folder", "folder of the export")
		parent.AddCommand(reads(command, app.TenantVariables))
	}
	move := &cobra.Command{
		Use: "move", Short: "move a tenant to another database of this deployment, while it is used", Args: cobra.NoArgs,
		Long: "Moves the rows of a tenant to another of the databases that DATABASE_URLS names, service by service, while the\n" +
			"tenant is used: reads go on, writes wait. After an interruption, run it again, with the same database or with the former one.",
		RunE: func(c *cobra.Command, _ []string) error {
			return app.MoveTenant(c.Context(), source, key, to, c.OutOrStdout())
		},
	}
	required(move, &key, "tenant", "key of the tenant, such as clever-otter")
	required(move, &to, "to", "name of the database in DATABASE_URLS, or main for that of DATABASE_URL")
	parent.AddCommand(reads(move, app.TenantVariables))
	parent.AddCommand(&cobra.Command{
		Use: "key", Short: "create an age key pair for exports", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return app.TenantKey(c.OutOrStdout()) },
	})
	return parent
}

func eventCommands() *cobra.Command {
	parent := &cobra.Command{Use: "events", Short: "events between the services"}
	var to string
	rewind := &cobra.Command{
		Use: "rewind", Short: "adjust the consumer groups to databases restored from a backup, before any process starts", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return app.RewindEvents(c.Context(), source, to, c.OutOrStdout())
		},
	}
	required(rewind, &to, "to", "time of the restored databases, such as 2026-11-22T16:00:00Z")
	parent.AddCommand(reads(rewind, app.RewindVariables))
	return parent
}
