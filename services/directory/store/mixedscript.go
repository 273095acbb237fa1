package store

import (
	"context"
	"log/slog"
	"slices"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/field"
)

// noteMixedScripts notes an account that gets a login name that mixes scripts, for the warning after the
// commit. Every statement that writes login names calls it. former are the login names that the account had,
// in normal form.
func (tx *Tx) noteMixedScripts(a directoryapi.Account, former ...string) {
	for _, name := range []string{a.Username, a.Email} {
		if field.MixesScripts(name) && !slices.Contains(former, field.LoginName(name)) {
			tx.mixedScripts = append(tx.mixedScripts, a)
			return
		}
	}
}

// warnOfMixedScripts tells the operator of possible look-alikes
// (docs/interface/accounts.md#login-names). The log has no login names.
func (tx *Tx) warnOfMixedScripts(ctx context.Context) {
	for _, a := range tx.mixedScripts {
		slog.WarnContext(caller.WithTenant(ctx, a.TenantID),
			"a login name mixes Latin, Cyrillic or Greek letters in a word, it may be a look-alike of another",
			"directory", a.DirectoryID.String(), "account", a.ID.String())
	}
}
