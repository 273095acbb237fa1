package outbox

import (
	"crypto/tls"
	"fmt"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/segmentio/kafka-go/sasl/scram"

	"github.com/doorward/doorward/pkg/secure"
)

// mechanism returns the SASL mechanism by which a connection authenticates, or nil if no user is
// configured.
func (cfg Config) mechanism() (sasl.Mechanism, error) {
	if cfg.Username == "" {
		return nil, nil
	}
	switch cfg.Mechanism {
	case "PLAIN":
		return plain.Mechanism{Username: cfg.Username, Password: cfg.Password.Reveal()}, nil
	case "SCRAM-SHA-256":
		return scram.Mechanism(scram.SHA256, cfg.Username, cfg.Password.Reveal())
	case "SCRAM-SHA-512":
		return scram.Mechanism(scram.SHA512, cfg.Username, cfg.Password.Reveal())
	}
	return nil, fmt.Errorf("KAFKA_SASL_MECHANISM is %q; set PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512", cfg.Mechanism)
}

// tls returns the TLS configuration of connections to the brokers, or nil for plain connections.
func (cfg Config) tls() (*tls.Config, error) {
	if !cfg.TLS {
		return nil, nil
	}
	authorities, err := secure.Authorities(cfg.CA)
	if err != nil {
		return nil, fmt.Errorf("KAFKA_CA: %w", err)
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: authorities}, nil
}

// transport returns the transport of a client or a producer.
func (cfg Config) transport() (*kafka.Transport, error) {
	mechanism, err := cfg.mechanism()
	if err != nil {
		return nil, err
	}
	secured, err := cfg.tls()
	return &kafka.Transport{SASL: mechanism, TLS: secured}, err
}

// dialer returns the dialer of a member of a consumer group.
func (cfg Config) dialer() (*kafka.Dialer, error) {
	mechanism, err := cfg.mechanism()
	if err != nil {
		return nil, err
	}
	secured, err := cfg.tls()
	return &kafka.Dialer{ClientID: clientID, Timeout: requestTimeout, SASLMechanism: mechanism, TLS: secured}, err
}
