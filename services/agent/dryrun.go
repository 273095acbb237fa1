package agent

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/go-ldap/ldap/v3"
)

// maxPrinted is how many entries of each kind DryRun prints.
const maxPrinted = 10

// DryRun tests the configuration and prints what a sync would send, without sending anything (the
// command agent check).
func DryRun(ctx context.Context, cfg Config, out io.Writer) error {
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(out, format+"\n", args...) }
	d, err := NewDoorward(cfg)
	if err != nil {
		return err
	}
	settings, err := d.Configuration(ctx)
	if err != nil {
		return fmt.Errorf("read the configuration of the agent: %w", err)
	}
	say("Doorward answers; the agent %s is of a directory of the kind %s", cfg.ID, settings.ProviderID)
	s, err := newServer(cfg, settings)
	if err != nil {
		return err
	}
	defer s.close()
	if err := s.probe(ctx); err != nil {
		return err
	}
	say("the directory server %s answers, and lets %s in", s.address(), settings.AgentUserDN)

	accounts, refused := 0, 0
	say("\naccounts below %s that match %s:", settings.accountBase(), settings.accountFilter())
	err = s.searchEntries(ctx, settings.accountBase(), settings.accountFilter(), settings.accountAttributes(),
		func(entry *ldap.Entry) error {
			e, err := settings.idOf(entry)
			if err != nil {
				return err
			}
			a := settings.account(e, entry)
			if accounts++; a.Email == nil {
				if refused++; refused <= maxPrinted {
					say("  left out, no %s: %s", settings.Accounts.EmailRDN, entry.DN)
				}
				return nil
			}
			if accounts-refused <= maxPrinted {
				say("  %s: username %s, email %s, name %s %s, disabled %t", entry.DN, text(a.Username), text(a.Email),
					text(a.GivenName),
					text(a.Surname),
					a.Disabled)
			}
			return nil
		})
	if err != nil {
		return err
	}
	groups := 0
	say("\ngroups below %s that match %s:", settings.groupBase(), settings.groupFilter())
	err = s.searchEntries(ctx, settings.groupBase(), settings.groupFilter(), settings.groupAttributes(),
		func(entry *ldap.Entry) error {
			if _, err := settings.idOf(entry); err != nil {
				return err
			}
			if groups++; groups <= maxPrinted {
				say("  %s: name %s, %d members", entry.DN, text(firstValue(entry, settings.Groups.NameRDN)),
					len(entry.GetEqualFoldAttributeValues(settings.membersRDN())))
			}
			return nil
		})
	if err != nil {
		return err
	}
	say("\n%d accounts, %d of them without an email, and %d groups", accounts, refused, groups)
	if accounts == 0 {
		return errors.New("no account was found: see baseDn, accountConfig and the rights of agentUserDn")
	}
	return nil
}

func text(s *string) string {
	if s == nil {
		return "none"
	}
	return *s
}
