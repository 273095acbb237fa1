package saml

import (
	"context"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/purge"
)

const (
	// certificateCheckInterval is the time between two checks of all certificates.
	certificateCheckInterval = 12 * time.Hour
	// certificateBatch is how many rows one query reads.
	certificateBatch = 500
)

// reportedStates are the values of the label state of the metric, by the states that are reported.
var reportedStates = map[string]string{
	CertificateExpiresSoon: "expiring", CertificateExpired: "expired", CertificateNotYetValid: "not_yet_valid",
}

// CertificateCheck warns of the certificates of partners (identity providers or service providers) by
// their dates. Messages that their keys have signed are accepted all the same (certificate.go), but a
// partner that follows the dates will sign with another key soon.
type CertificateCheck[Row any] struct {
	Partner, Attribute string // as the log names a partner, and the member with its id
	Gauge              metric.Int64Gauge
	Now                func() time.Time
	// Page reads at most limit rows of all tenants after another one; the zero row is before the first.
	Page func(ctx context.Context, after Row, limit int) ([]Row, error)
	// Certificates returns the certificates of a row, and which partner they are of.
	Certificates func(Row) (partner id.Ref, certificates []string)
}

// Watch is the worker that runs the check until ctx ends.
func (c CertificateCheck[Row]) Watch(ctx context.Context) error {
	check := func(ctx context.Context) error {
		_, err := c.Run(ctx)
		return err
	}
	return purge.Periodically(certificateCheckInterval, "check of SAML certificates failed, retrying", check)(ctx)
}

// Run counts the partners by the state of their certificates, records the counts as metrics, and logs each
// partner whose state is not CertificateValid.
func (c CertificateCheck[Row]) Run(ctx context.Context) (counts map[string]int64, err error) {
	counts = map[string]int64{}
	if err := c.count(ctx, counts); err != nil {
		return counts, err
	}
	for state, label := range reportedStates {
		c.Gauge.Record(ctx, counts[state], metric.WithAttributes(attribute.String("state", label)))
	}
	return counts, nil
}

// count is Run without the metrics.
func (c CertificateCheck[Row]) count(ctx context.Context, counts map[string]int64) error {
	var after Row
	for {
		found, err := c.Page(ctx, after, certificateBatch)
		if err != nil {
			return err
		}
		for _, row := range found {
			partner, certificates := c.Certificates(row)
			state := CertificateStatus(c.Now(), certificates...)
			counts[state]++
			if reportedStates[state] != "" {
				slog.WarnContext(ctx, "certificate of a SAML "+c.Partner+
					" is not valid for much longer, or not now; its key is used all the same",
					"tenant", partner.Tenant.String(), c.Attribute, partner.ID.String(), "state", state)
			}
		}
		if len(found) < certificateBatch {
			return nil
		}
		after = found[len(found)-1]
	}
}
