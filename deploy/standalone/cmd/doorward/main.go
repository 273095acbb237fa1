// Command doorward runs the whole product as one process (standalone). With a subcommand
// it works on the data of a deployment instead, standalone or distributed
// (docs/operations.md): migrations, checks, dead letters, key rotation, an administrator's
// API key, export, import and move of a tenant, backup and restore. Each is a file of deploy/standalone/app.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/doorward/doorward/deploy/standalone/app"
	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/operatorlog"
	"github.com/doorward/doorward/pkg/run"
	"github.com/doorward/doorward/pkg/telemetry"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if len(os.Args) == 1 || os.Args[1][0] == '-' {
		stop()
		run.Main("doorward", app.About, app.FromEnv, app.Run)
	}
	os.Exit(execute(ctx, commands(), os.Stderr))
}

// source is the environment, which the subcommands read.
var source = env.New(os.Environ())

func commands() *cobra.Command {
	root := &cobra.Command{Use: "doorward", SilenceErrors: true, SilenceUsage: true}
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(migrate(), doctor(), logins(), explain(), deadLetters(), masterKeys(), admin(), tenant(), events(),
		audit(), backup(), restore(), cellsCommand(), version())
	app.DeclareOperator(source)
	return root
}

// withVariables adds the environment variables of a command to its help.
func withVariables(command *cobra.Command, variables func(*env.Source)) *cobra.Command {
	flagsHelp := command.HelpFunc()
	command.SetHelpFunc(func(c *cobra.Command, args []string) {
		flagsHelp(c, args)
		_, _ = fmt.Fprint(c.OutOrStdout(),
			"\nVariables of the environment; without a database among them the data folder, DOORWARD_DATA_DIR, is used:\n\n")
		variables(source)
		source.Help(c.OutOrStdout())
	})
	return command
}

func migrate() *cobra.Command {
	var check bool
	command := &cobra.Command{
		Use: "migrate", Short: "migrate the schemas of all services and exit", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if check {
				return app.CheckMigrations(c.Context(), source, c.OutOrStdout())
			}
			return app.Migrate(c.Context(), source, c.OutOrStdout())
		},
	}
	command.Flags().BoolVar(&check, "check", false, "only say how many migrations are to do; exit status 1 if there are any")
	return withVariables(command, app.MigrateVariables)
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
	return withVariables(command, app.DoctorVariables)
}

func logins() *cobra.Command {
	var tenantName, login, since string
	var asJSON bool
	command := &cobra.Command{
		Use: "logins", Short: "list the failed logins of a login name, the newest first", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return app.Logins(c.Context(), source, tenantName, login, since, asJSON, c.OutOrStdout())
		},
	}
	required(command, &tenantName, "tenant", "key or id of the tenant, such as clever-otter")
	required(command, &login, "login", "user name or email")
	command.Flags().StringVar(&since, "since", "24h", "how far back, at most 30d")
	command.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return withVariables(command, app.LoginsVariables)
}

func explain() *cobra.Command {
	var tenantName, application string
	var asJSON bool
	command := &cobra.Command{
		Use: "explain LOGIN", Args: cobra.ExactArgs(1),
		Short: "say what a login with a user name or email would do; " +
			"exit status 1 when its password would not be compared",
		RunE: func(c *cobra.Command, args []string) error {
			return app.Explain(c.Context(), source, tenantName, application, args[0], asJSON, c.OutOrStdout())
		},
	}
	command.Flags().StringVar(&tenantName, "tenant", "",
		"key or id of the tenant, such as clever-otter; without it the application of any tenant")
	required(command, &application, "application", "name or id of the application")
	command.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return withVariables(command, app.ExplainVariables)
}

func deadLetters() *cobra.Command {
	parent := &cobra.Command{Use: "deadletters", Short: "events that could not be handled"}
	var selection app.DeadLetterSelection
	var all bool
	add := func(name, short string, variables func(*env.Source)) *cobra.Command {
		command := &cobra.Command{Use: name, Short: short, Args: cobra.NoArgs}
		command.Flags().StringVar(&selection.Topic, "topic", "", "of this topic only, such as doorward.directory")
		command.Flags().StringVar(&selection.Group, "group", "", "of this consumer group only, such as doorward.notification")
		command.Flags().StringVar(&selection.ID, "id", "", "the event with this id only")
		parent.AddCommand(withVariables(command, variables))
		return command
	}
	add("list", "list them, one JSON object a line", app.DeadLetterVariables).RunE = func(c *cobra.Command, _ []string) error {
		return app.ListDeadLetters(c.Context(), source, selection, c.OutOrStdout())
	}
	resolve := func(name, short string, retry bool) {
		command := add(name, short, app.ResolveVariables)
		command.Flags().BoolVar(&all, "all", false, "all of them")
		command.PreRunE = func(*cobra.Command, []string) error {
			if (selection == app.DeadLetterSelection{}) && !all {
				return app.UsageError("choose by --topic, --group or --id, or say --all")
			}
			return nil
		}
		recorded(command, func(c *cobra.Command, _ []string, _ *operatorlog.Event) error {
			return app.ResolveDeadLetters(c.Context(), source, retry, selection, c.OutOrStdout())
		})
	}
	resolve("retry", "send them to their consumers again", true)
	resolve("drop", "remove them from the list without a retry", false)
	return parent
}

func backup() *cobra.Command {
	var options app.BackupOptions
	var record, asJSON bool
	command := &cobra.Command{
		Use: "backup FOLDER", Args: cobra.MaximumNArgs(1),
		Short: "back up a data folder into a new folder below FOLDER, while its process runs or not",
		PreRunE: func(_ *cobra.Command, args []string) error {
			switch {
			case record && (len(args) > 0 || options != app.BackupOptions{}):
				return app.UsageError("--record stands alone")
			case record:
				return nil
			case len(args) == 0:
				return app.UsageError("name the folder of the backups")
			case options.Keep < 0:
				return app.UsageError(fmt.Sprintf("--keep %d: use a number from 1 on", options.Keep))
			}
			return app.CheckFolder(source)
		},
	}
	recorded(command, func(c *cobra.Command, args []string, _ *operatorlog.Event) error {
		if record {
			return app.RecordBackup(c.Context(), source, asJSON, c.OutOrStdout())
		}
		return app.Backup(c.Context(), source, args[0], options, asJSON, c.OutOrStdout())
	})
	command.Flags().StringVar(&options.Recipients, "recipient", "", "age public key that the files are encrypted for, such as age1…")
	command.Flags().IntVar(&options.Keep, "keep", 0, "remove all backups but this many, the newest; 0: none")
	command.Flags().BoolVar(&record, "record", false, "only record that another tool has completed a backup now")
	command.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return withVariables(command, app.BackupVariables)
}

func restore() *cobra.Command {
	var identity string
	command := &cobra.Command{
		Use: "restore FOLDER", Args: cobra.ExactArgs(1),
		Short: "make a data folder of a backup: of FOLDER, or of the newest whole one in it",
	}
	recordedAs(command, app.Change{MakesDatabase: true}, func(c *cobra.Command, args []string, _ *operatorlog.Event) error {
		return app.Restore(c.Context(), source, args[0], identity, c.OutOrStdout())
	})
	command.Flags().StringVar(&identity, "identity", "", "file of the age private key, as doorward tenant key writes it")
	return withVariables(command, app.BackupVariables)
}

func version() *cobra.Command {
	var asJSON bool
	command := &cobra.Command{
		Use: "version", Short: "print the version, the commit and the platform", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if asJSON {
				return json.NewEncoder(c.OutOrStdout()).Encode(telemetry.CurrentBuild())
			}
			telemetry.CurrentBuild().Print(c.OutOrStdout(), "doorward")
			return nil
		},
	}
	command.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return command
}

func masterKeys() *cobra.Command {
	parent := &cobra.Command{Use: "keys", Short: "master keys"}
	rotate := recorded(&cobra.Command{
		Use: "rotate", Args: cobra.NoArgs,
		Short: "encrypt all secrets again under the first master key; after an interruption, run it again to continue",
	}, func(c *cobra.Command, _ []string, _ *operatorlog.Event) error {
		return app.RotateKeys(c.Context(), source, c.OutOrStdout())
	})
	parent.AddCommand(withVariables(rotate, app.RotateVariables))
	return parent
}

// required adds a flag without which the command is an error.
func required(command *cobra.Command, value *string, name, usage string) {
	command.Flags().StringVar(value, name, "", usage)
	_ = command.MarkFlagRequired(name) // fails for a flag that does not exist
}

// sealedFor adds the flag of a command that prints a secret.
func sealedFor(command *cobra.Command, recipients *string) {
	command.Flags().StringVar(recipients, "recipient", "",
		"age public key, such as age1…, that the secret is encrypted for: it is printed as sealed; needed on Kubernetes")
}

func admin() *cobra.Command {
	parent := &cobra.Command{Use: "admin", Short: "access of administrators"}
	var tenantName, recipients string
	key := recorded(&cobra.Command{
		Use: "key", Short: "create an administrator's API key in the database", Args: cobra.NoArgs,
	}, func(c *cobra.Command, _ []string, e *operatorlog.Event) error {
		return app.AdminKey(c.Context(), source, tenantName, recipients, e, c.OutOrStdout())
	})
	required(key, &tenantName, "tenant", "key or id of the tenant, such as clever-otter")
	sealedFor(key, &recipients)
	parent.AddCommand(withVariables(key, app.AdminKeyVariables))
	return parent
}

func tenant() *cobra.Command {
	parent := &cobra.Command{Use: "tenant", Short: "suspend, resume, export and import a tenant"}
	var tenantName, recipients, identityFile, signer, former, folder string
	export := recorded(&cobra.Command{
		Use: "export", Short: "export a tenant to a folder, encrypted; after an interruption, run it again to continue",
		Args: cobra.NoArgs,
	}, func(c *cobra.Command, _ []string, e *operatorlog.Event) error {
		return app.ExportTenant(c.Context(), source, tenantName, recipients, folder, e, c.OutOrStdout())
	})
	required(export, &tenantName, "tenant", "key or id of the tenant, such as clever-otter")
	required(export, &recipients, "recipient", "age public key that the files are encrypted for, such as age1…")
	importCommand := recorded(&cobra.Command{
		Use: "import", Short: "import a tenant into this deployment; after an interruption, run it again to continue",
		Args: cobra.NoArgs,
	}, func(c *cobra.Command, _ []string, e *operatorlog.Event) error {
		identity, err := os.ReadFile(identityFile)
		if err != nil {
			return err
		}
		return app.ImportTenant(c.Context(), source, folder, string(identity), signer, former, e, c.OutOrStdout())
	})
	required(importCommand, &identityFile, "identity", "file of the age private key, as doorward tenant key writes it")
	importCommand.Flags().StringVar(&signer, "signer", "",
		"public key that doorward tenant export has printed; "+
			"without it the export must be of a deployment with the same master key")
	importCommand.Flags().StringVar(&former, "former-address", "",
		"base address that the tenant had, such as https://id.example.com/v1, if it is not that of the export")
	for _, command := range []*cobra.Command{export, importCommand} {
		required(command, &folder, "folder", "folder of the export")
		parent.AddCommand(withVariables(command, app.TenantVariables))
	}
	addTenantStatus(parent)
	addTenantCommands(parent)
	var sealFor string
	key := &cobra.Command{
		Use: "key", Short: "create an age key pair for exports", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return app.NewExportKeyPair(source, sealFor, c.OutOrStdout())
		},
	}
	sealedFor(key, &sealFor)
	parent.AddCommand(key)
	return parent
}

// addTenantStatus adds the commands that change the status of a tenant.
func addTenantStatus(parent *cobra.Command) {
	var tenantName, reason string
	var asJSON bool
	suspend := &cobra.Command{
		Use: "suspend", Short: "refuse all requests of a tenant, everywhere within 100 ms", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return app.SuspendTenant(c.Context(), source, tenantName, reason, asJSON, c.OutOrStdout())
		},
	}
	suspend.Flags().StringVar(&reason, "reason", "", "why, for the record of operators; required")
	resume := &cobra.Command{
		Use: "resume", Short: "end the suspension of a tenant", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return app.ResumeTenant(c.Context(), source, tenantName, asJSON, c.OutOrStdout())
		},
	}
	for _, command := range []*cobra.Command{suspend, resume} {
		required(command, &tenantName, "tenant", "key or id of the tenant, such as clever-otter")
		command.Flags().BoolVar(&asJSON, "json", false, "write the tenant as JSON")
		parent.AddCommand(withVariables(command, app.TenantStatusVariables))
	}
}

func audit() *cobra.Command {
	parent := &cobra.Command{Use: "audit", Short: "what was done in a deployment"}
	var tenantName, since string
	var asJSON bool
	operator := &cobra.Command{
		Use: "operator", Short: "list what operators have done by commands, the newest first", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return app.OperatorEvents(c.Context(), source, tenantName, since, asJSON, c.OutOrStdout())
		},
	}
	operator.Flags().StringVar(&tenantName, "tenant", "", "of the tenant with this key or id only")
	operator.Flags().StringVar(&since, "since", "30d", "how far back, at most 400d")
	operator.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	parent.AddCommand(withVariables(operator, app.TenantStatusVariables))
	return parent
}

func events() *cobra.Command {
	parent := &cobra.Command{Use: "events", Short: "events between the services"}
	var to string
	rewind := recorded(&cobra.Command{
		Use: "rewind", Short: "adjust the consumer groups to databases restored from a backup, before any process starts",
		Args: cobra.NoArgs,
	}, func(c *cobra.Command, _ []string, _ *operatorlog.Event) error {
		return app.RewindEvents(c.Context(), source, to, c.OutOrStdout())
	})
	required(rewind, &to, "to", "time of the restored databases, such as 2026-11-22T16:00:00Z")
	parent.AddCommand(withVariables(rewind, app.RewindVariables))
	return parent
}
