package main

import (
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/doorward/doorward/deploy/standalone/tenants"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/operatorlog"
)

// addTenantCommands adds the commands about the tenants of the deployment.
func addTenantCommands(parent *cobra.Command) {
	for _, command := range []*cobra.Command{tenantList(), tenantShow(), tenantDelete(), tenantUsage()} {
		parent.AddCommand(withVariables(command, tenants.Variables))
	}
	parent.AddCommand(withVariables(tenantCreate(), tenants.CreationVariables))
}

func tenantCreate() *cobra.Command {
	var in tenants.Creation
	var name, owner, key string
	command := recorded(&cobra.Command{
		Use: "create", Short: "create a tenant with its owner and the owner's API key, and show them as JSON", Args: cobra.NoArgs,
	}, func(c *cobra.Command, _ []string, e *operatorlog.Event) error {
		in.Name, in.OwnerEmail = field.Some(name), field.Some(owner)
		if key != "" {
			in.Key = field.Some(key)
		}
		return tenants.Create(c.Context(), source, in, e, c.OutOrStdout())
	})
	required(command, &name, "name", "name of the tenant")
	required(command, &owner, "owner", "email of its owner, whose password is unset until a reset by mail")
	command.Flags().StringVar(&key, "key", "", "key of the tenant, such as clever-otter; without one two words that are free")
	sealedFor(command, &in.Recipients)
	command.Flags().Bool("json", true, "write JSON, which it always does")
	return command
}

func tenantList() *cobra.Command {
	var q, status string
	var asJSON bool
	command := &cobra.Command{
		Use: "list", Short: "list the tenants: key, id, status, accounts, logins and mails of 30 days, name", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return tenants.List(c.Context(), source, q, status, asJSON, c.OutOrStdout())
		},
	}
	command.Flags().StringVar(&q, "q", "", "whose key or name has this text only")
	command.Flags().StringVar(&status, "status", "", "with this status only: ENABLED, SUSPENDED or DELETING")
	command.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return command
}

func tenantShow() *cobra.Command {
	var name string
	command := &cobra.Command{
		Use: "show", Short: "show a tenant as JSON: its owner, what it stores, what it used in 30 days", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return tenants.Show(c.Context(), source, name, c.OutOrStdout())
		},
	}
	required(command, &name, "tenant", "key, id or name of the tenant, such as clever-otter")
	command.Flags().Bool("json", true, "write JSON, which it always does")
	return command
}

func tenantDelete() *cobra.Command {
	var in tenants.Deletion
	var asJSON bool
	command := &cobra.Command{
		Use: "delete", Short: "suspend a tenant, and delete all of it after a grace; resume ends that", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return tenants.Delete(c.Context(), source, in, terminal(), asJSON, c.OutOrStdout())
		},
	}
	required(command, &in.Tenant, "tenant", "key or id of the tenant, such as clever-otter")
	command.Flags().StringVar(&in.Reason, "reason", "", "why, for the record of operators; required")
	command.Flags().StringVar(&in.Grace, "grace", "P7D", "how long resume can end the deletion")
	command.Flags().BoolVar(&in.Confirmed, "yes", false, "do not ask")
	command.Flags().BoolVar(&asJSON, "json", false, "write the tenant as JSON")
	return command
}

// terminal returns the standard input where it is a terminal, else nil.
func terminal() io.Reader {
	info, err := os.Stdin.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return nil
	}
	return os.Stdin
}

func tenantUsage() *cobra.Command {
	var in tenants.UsageQuery
	var asJSON bool
	command := &cobra.Command{
		Use: "usage", Short: "list logins, failed logins, mails and text messages of tenants, the newest first", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return tenants.Usage(c.Context(), source, in, asJSON, c.OutOrStdout())
		},
	}
	command.Flags().StringVar(&in.Tenant, "tenant", "", "of the tenant with this key or id only")
	command.Flags().StringVar(&in.From, "from", "", "first day, such as 2026-11-01; the default are 30 days")
	command.Flags().StringVar(&in.To, "to", "", "last day; the default is today (UTC)")
	command.Flags().StringVar(&in.By, "by", "day", "hour, day or month")
	command.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return command
}
