package notification

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/notification/store"
)

const (
	// failuresMost is how many failures one after the other make a tenant's server
	// be left (resolutions, section 20), and how many of one mail make it go
	// through the deployment's.
	failuresMost = 5
	// visitMost bounds the work on one mail at a tenant's server, which may be slow for
	// its own reasons.
	visitMost = 30 * time.Second
)

// probeIn gives the time until a mail tries a server again that was left: a
// minute, doubled up to an hour.
func probeIn(probes int) time.Duration { return min(time.Minute<<min(probes, 10), time.Hour) }

// errPassedBy says that the tenant's server was not told of the mail, so that it
// can go through the deployment's.
var errPassedBy = errors.New("the server of the tenant is passed by")

// route gives the tenant's server that a mail is to go through; nil stands for
// the deployment's. Of the mails of a server that was left one now and then
// tries it.
func (s *Service) route(ctx context.Context, d store.Delivery) (*store.SMTPServer, error) {
	if d.Failures >= failuresMost || d.Workflow == smtpAlert {
		return nil, nil
	}
	v, err := s.store.EnabledSMTPServer(ctx, d.TenantID)
	if errors.Is(err, apierr.NotFound) {
		return nil, nil
	}
	if err != nil || v.LeftAt == nil {
		return &v, err
	}
	now, mine := s.now(), false
	if v.ProbeAt != nil && now.Before(*v.ProbeAt) {
		return nil, nil
	}
	err = s.store.Tx(ctx, func(tx *store.Tx) (err error) {
		mine, err = tx.ClaimProbe(ctx, v, now, now.Add(probeIn(v.Probes+1)))
		return err
	})
	if err != nil || !mine {
		return nil, err
	}
	return &v, nil
}

// through sends a letter through the tenant's server, and notes how that works.
// It returns errPassedBy for a probe that failed before the server was told of
// the mail.
func (c *mailCarrier) through(ctx context.Context, v store.SMTPServer, l letter) error {
	if !c.s.visits.begin(v.TenantID) {
		return errTurn
	}
	defer c.s.visits.end(v.TenantID)
	m, err := c.s.compose(l, c.s.customOrigin(l.Template, v.Username), c.s.now())
	if err != nil {
		return refusal{err}
	}
	if err := c.visit(v); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, visitMost)
	defer cancel()
	err = c.custom.carry(limited, m)
	away := errors.Is(err, errAway)
	if !away && !errors.Is(err, errBroken) {
		c.s.praise(ctx, v)
		return err
	}
	if away && v.LeftAt != nil {
		return errPassedBy
	}
	if ctx.Err() == nil {
		c.s.blame(ctx, v, err)
	}
	// Not errAway: the mails of others do not wait for this server.
	return errors.New("the tenant's mail server: " + err.Error())
}

// praise notes that a tenant's server answered as one does that works, where
// something else was noted before.
func (s *Service) praise(ctx context.Context, v store.SMTPServer) {
	if v.Failures == 0 && v.LeftAt == nil {
		return
	}
	if err := s.store.Tx(ctx, func(tx *store.Tx) error { return tx.Recover(ctx, v) }); err != nil {
		slog.WarnContext(ctx, "the recovery of a tenant's mail server was not noted", "smtpServer", v.ID.String(), "error", err.Error())
		return
	}
	if v.LeftAt != nil {
		slog.InfoContext(ctx, "a tenant's mail server works again", "tenant", v.TenantID.String(), "smtpServer", v.ID.String())
	}
}

// visit makes the courier to a tenant's server, unless it is there already.
func (c *mailCarrier) visit(v store.SMTPServer) error {
	to, err := c.s.reached(v)
	if err != nil {
		return err
	}
	if c.custom != nil && c.custom.server == to {
		return nil
	}
	if c.custom != nil {
		c.custom.hangUp()
	}
	c.custom, err = newCourier(to, c.s.cfg.Reach.Dialer(), visitMost)
	return err
}

// blame counts a failure of a tenant's server. At the one that is too many it is
// left, and its owner is told, once.
func (s *Service) blame(ctx context.Context, v store.SMTPServer, failure error) {
	now, left := s.now(), false
	err := s.store.Tx(ctx, func(tx *store.Tx) (err error) {
		if left, err = tx.CountFailure(ctx, v, failuresMost, now, now.Add(probeIn(0))); err != nil || !left {
			return err
		}
		alert := id.New(now)
		return tx.InsertDelivery(ctx, store.Delivery{TenantID: v.TenantID, ID: alert, EventID: alert, Kind: store.Mail, Workflow: smtpAlert, Trace: map[string]string{}, CreatedAt: now})
	})
	if err != nil {
		slog.WarnContext(ctx, "a failure of a tenant's mail server was not counted", "smtpServer", v.ID.String(), "error", err.Error())
		return
	}
	if left {
		s.fallbacks.Add(ctx, 1)
		slog.WarnContext(ctx, "a tenant's mail server is left, its mails go through the deployment's", "tenant", v.TenantID.String(),
			"smtpServer", v.ID.String(), "error", failure.Error())
		s.mails.stir()
	}
}

// smtpAlert is the mail that tells the owner of a tenant that its server is
// left. No template of a directory has it, and it always goes through the
// deployment's server.
const smtpAlert directoryapi.Workflow = "smtpAlert"

const alertText = `Hello,

your mail server %s, port %d, failed %d times in a row. Until it works again your mails go through the server of this service. It is tried again by itself, less often from time to time; a change of its settings makes it be tried at once.

Please look whether it is running, accepts its username and password, and allows the senders of your email templates.
`

// alert gathers the mail that tells of a server that is left, unless it works
// again or is gone.
func (s *Service) alert(ctx context.Context, d store.Delivery) (letter, error) {
	l := letter{delivery: d}
	v, err := s.store.EnabledSMTPServer(ctx, d.TenantID)
	if errors.Is(err, apierr.NotFound) || (err == nil && v.LeftAt == nil) {
		return l, errUnwanted
	}
	if err != nil {
		return l, err
	}
	l.Account, err = s.peers.Directory.Owner(ctx, directoryapi.Ref{Tenant: d.TenantID, ID: d.TenantID})
	if errors.Is(err, apierr.NotFound) {
		return l, errUnwanted
	}
	if err != nil {
		return l, fmt.Errorf("ask for the owner: %w", err)
	}
	l.Template = directoryapi.EmailTemplate{
		Workflow: smtpAlert, Subject: "Your mail server does not work", MimeType: "text/plain",
		TextBody: fmt.Sprintf(alertText, v.Host, v.Port, failuresMost),
	}
	return l, nil
}

// errTurn gives a mail back whose server has as many senders as it may have.
var errTurn = errors.New("it is not its turn")

// visits keeps the senders of this process from waiting for the servers of
// tenants: at each there is one of them, and one stays with the deployment's
// where there are several.
type visits struct {
	mu   sync.Mutex
	most int
	at   map[id.ID]bool // tenants
}

// begin notes that a sender is at a tenant's server until end, unless it has to
// come back later.
func (v *visits) begin(tenant id.ID) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.at[tenant] || len(v.at) >= v.most {
		return false
	}
	v.at[tenant] = true
	return true
}

func (v *visits) end(tenant id.ID) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.at, tenant)
}

// skip gives what other senders leave for later, so that few have to come back.
func (v *visits) skip() store.Skip {
	v.mu.Lock()
	defer v.mu.Unlock()
	return store.Skip{Tenants: slices.AppendSeq([]id.ID{}, maps.Keys(v.at)), Custom: len(v.at) >= v.most}
}
