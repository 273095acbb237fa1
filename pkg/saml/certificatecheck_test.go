package saml

import (
	"context"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric/noop"

	"github.com/doorward/doorward/pkg/id"
)

func TestEveryCertificateIsCheckedOnce(t *testing.T) {
	certificate := func(made time.Time) string {
		pair, err := NewKeyPair("partner", made)
		if err != nil {
			t.Fatal(err)
		}
		return pair.Certificate
	}
	valid, ended := certificate(now), certificate(now.AddDate(-11, 0, 0))
	var log strings.Builder
	former := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(former)
	const rows = 2*certificateBatch + 1
	check := CertificateCheck[int]{
		Partner: "service provider", Attribute: "service_provider", Gauge: noop.Int64Gauge{},
		Now: func() time.Time { return now },
		Page: func(_ context.Context, after, limit int) (page []int, _ error) {
			for row := after + 1; row <= rows && len(page) < limit; row++ {
				page = append(page, row)
			}
			return page, nil
		},
		Certificates: func(row int) (id.Ref, []string) {
			if row == rows {
				return id.Ref{Tenant: id.ID{1}, ID: id.ID{2}}, []string{ended}
			}
			return id.Ref{}, []string{ended, valid}
		},
	}
	counts, err := check.Run(t.Context())
	if want := map[string]int64{CertificateValid: rows - 1, CertificateExpired: 1}; err != nil || !maps.Equal(counts, want) {
		t.Errorf("the certificates are counted as %v, %v, want %v", counts, err, want)
	}
	want := "tenant=" + id.ID{1}.String() + " service_provider=" + id.ID{2}.String() + " state=EXPIRED\n"
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.HasSuffix(got, want) {
		t.Errorf("the log has %q, want one line with %q", got, want)
	}
}
