package application

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/words"
	"github.com/doorward/doorward/services/application/store"
)

// maxHostLabel is the greatest length of a label of a host name (RFC 1035, section 2.3.4).
const maxHostLabel = 63

var hostLabelPattern = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?$`)

// hostLabel checks a dnsLabel or a nameKey, which must be a label of a host name
// (docs/interface/organizations.md#name-keys), and returns it in lower case.
func hostLabel(in field.Text, name string) (string, error) {
	label, err := field.Required(in, name, maxHostLabel)
	if err != nil {
		return "", err
	}
	if !hostLabelPattern.MatchString(label) {
		return "", apierr.Format.Because(
			"%s may have letters from a to z, digits and hyphens, but no hyphen at either end; it is %q", name, label,
		)
	}
	return strings.ToLower(label), nil
}

// maxWordPairs is how many pairs of words are tried as the label of a new application, and then
// again with a random number appended: a deployment may have more applications than there are
// pairs.
const maxWordPairs = 4

// assignDNSLabel gives a free label to an application that has none.
func assignDNSLabel(ctx context.Context, tx *store.Tx, a *applicationapi.Application) error {
	for attempt := range 2 * maxWordPairs {
		label := words.Pair("doorward/dns label/" + a.ID.String() + "/" + strconv.Itoa(attempt))
		if attempt >= maxWordPairs {
			label += "-" + strconv.Itoa(randomNumber(a.ID))
		}
		free, err := tx.ClaimDNSLabel(ctx, *a, label)
		if err != nil {
			return err
		}
		if free {
			a.DNSLabel = label
			return nil
		}
	}
	return fmt.Errorf("none of %d labels is free for the application %s", 2*maxWordPairs, a.ID)
}

// ClientAPIOrigin returns the web origin of the application's own Client API.
func (s *Service) ClientAPIOrigin(a applicationapi.Application) string {
	return "https://" + a.DomainName(s.cfg.Suffix)
}

// ensureDNSLabel gives a label to an application that was created by a release without DNS
// labels. a and err are the result of reading the application.
func (s *Service) ensureDNSLabel(ctx context.Context, a applicationapi.Application,
	err error) (applicationapi.Application, error) {
	if err != nil || a.Builtin || a.DNSLabel != "" {
		return a, err
	}
	err = s.store.Tx(ctx, func(tx *store.Tx) (err error) {
		if a, err = tx.LockApplication(ctx, a.TenantID, a.ID); err != nil || a.DNSLabel != "" {
			return err
		}
		if err := assignDNSLabel(ctx, tx, &a); err != nil {
			return err
		}
		a.AuthorizedOriginURIs = append([]string{s.ClientAPIOrigin(a)}, a.AuthorizedOriginURIs...)
		return tx.UpdateApplication(ctx, a, a)
	})
	return a, err
}

// SetDNSLabel changes the DNS label of an application, which is the host name of its Client
// API. The origin of the former label is replaced in the authorized origins: any tenant may
// take the former label from then on.
func (s *Service) SetDNSLabel(ctx context.Context, in applicationapi.SetDNSLabel) (applicationapi.Application, error) {
	at := id.Ref{Tenant: in.Tenant, ID: in.Application}
	a, err := s.Application(ctx, at)
	if err != nil {
		return a, err
	}
	if a.Builtin {
		return a, apierr.BadRequest.Because("the console application has no Client API that could be named")
	}
	label, err := hostLabel(field.Some(in.Label), "dnsLabel")
	if err != nil {
		return a, err
	}
	err = s.store.Tx(ctx, func(tx *store.Tx) (err error) {
		if a, err = tx.LockApplication(ctx, at.Tenant, at.ID); err != nil || a.DNSLabel == label {
			return err
		}
		if err := tx.ChangeDNSLabel(ctx, a, label); err != nil {
			return err
		}
		place := slices.Index(a.AuthorizedOriginURIs, s.ClientAPIOrigin(a))
		a.DNSLabel = label
		if place >= 0 {
			a.AuthorizedOriginURIs[place] = s.ClientAPIOrigin(a)
			a.ModifiedAt = s.now()
		}
		return tx.UpdateApplication(ctx, a, a)
	})
	if errors.Is(err, apierr.Exists) {
		err = apierr.Exists.Because("another application has the dnsLabel %q", label).Saying("That name is taken.")
	}
	return a, err
}
