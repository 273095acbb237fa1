package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/doorward/doorward/deploy/standalone/app"
	"github.com/doorward/doorward/deploy/standalone/cells"
)

// errCells is the error of a check to which a cell did not answer.
var errCells = errors.New("not all cells answer")

func cellsCommand() *cobra.Command {
	var listen, file string
	var check bool
	command := &cobra.Command{
		Use: "cells", Args: cobra.NoArgs,
		Short: "tell a reverse proxy which of several deployments (cells) a request belongs to",
		RunE: func(c *cobra.Command, _ []string) error {
			if file == "" || listen == "" && !check {
				return app.UsageError("--config and --listen are needed, or --config and --check")
			}
			config, err := cells.ReadConfig(file)
			if err != nil {
				return app.UsageError(err.Error())
			}
			directory := cells.New(config, time.Now)
			if !check {
				return directory.Serve(c.Context(), listen)
			}
			failed := directory.Check(c.Context())
			for _, cell := range config.Cells {
				result := "answers"
				if err := failed[cell.Name]; err != nil {
					result = err.Error()
				}
				_, _ = fmt.Fprintf(c.OutOrStdout(), "%s: %s\n", cell.Name, result)
			}
			if len(failed) > 0 {
				return errCells
			}
			return nil
		},
	}
	command.Flags().StringVar(&listen, "listen", "", "address that the proxy asks, such as 127.0.0.1:9080")
	command.Flags().StringVar(&file, "config", "", "JSON file of the cells (docs/cells.md)")
	command.Flags().BoolVar(&check, "check", false, "only ask each cell once; exit status 1 when one does not answer")
	return command
}
