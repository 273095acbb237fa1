package main

import (
	"github.com/spf13/cobra"

	"github.com/doorward/doorward/deploy/standalone/tenants"
)

// addTenantCommands adds the commands about the tenants of the deployment.
func addTenantCommands(parent *cobra.Command) {
	var in tenants.UsageQuery
	var asJSON bool
	usage := &cobra.Command{
		Use: "usage", Short: "list logins, failed logins, mails and text messages of tenants, the newest first", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return tenants.Usage(c.Context(), source, in, asJSON, c.OutOrStdout())
		},
	}
	usage.Flags().StringVar(&in.Tenant, "tenant", "", "of the tenant with this key or id only")
	usage.Flags().StringVar(&in.From, "from", "", "first day, such as 2026-11-01; the default are 30 days")
	usage.Flags().StringVar(&in.To, "to", "", "last day; the default is today (UTC)")
	usage.Flags().StringVar(&in.By, "by", "day", "hour, day or month")
	usage.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	parent.AddCommand(withVariables(usage, tenants.Variables))
}
