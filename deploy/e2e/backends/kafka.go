package backends

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl/scram"

	"github.com/doorward/doorward/deploy/e2e/harness"
)

// brokerSettings are those of a broker of the cluster. Clients connect with SASL and
// TLS; an event is acknowledged when two of three brokers have it.
const brokerSettings = `node.id=%[1]d
controller.quorum.voters=%[2]s
listeners=CLIENT://%[3]s,BROKER://%[4]s,CONTROLLER://%[5]s
advertised.listeners=CLIENT://%[6]s,BROKER://%[4]s
listener.security.protocol.map=CLIENT:SASL_SSL,BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT
listener.name.client.sasl.enabled.mechanisms=SCRAM-SHA-512
listener.name.client.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.client.ssl.keystore.type=PEM
listener.name.client.ssl.keystore.location=%[7]s
log.dirs=%[8]s
default.replication.factor=3
min.insync.replicas=2
offsets.topic.replication.factor=3
offsets.topic.num.partitions=3
transaction.state.log.replication.factor=3
transaction.state.log.min.isr=2
share.coordinator.state.topic.replication.factor=3
share.coordinator.state.topic.min.isr=2
`

// Kafka is a cluster of three brokers.
type Kafka struct {
	Brokers   []*harness.Daemon
	Addresses []string // as localhost, the name of the certificates
}

// StartKafka starts the brokers with the user of the product.
func (s *Servers) StartKafka() *Kafka {
	s.Helper()
	const brokers = 3
	mechanism, err := scram.Mechanism(scram.SHA512, User, Password)
	s.Must(err)
	trust := s.Authority.TLS()
	trust.ServerName = "localhost"
	var inner, controllers, voters []string
	k := &Kafka{Brokers: make([]*harness.Daemon, brokers)}
	listen := make([]string, brokers)
	for i := range brokers {
		listen[i] = harness.FreeAddress()
		k.Addresses = append(k.Addresses, strings.Replace(listen[i], "127.0.0.1", "localhost", 1))
		inner, controllers = append(inner, harness.FreeAddress()), append(controllers, harness.FreeAddress())
		voters = append(voters, fmt.Sprintf("%d@%s", i+1, controllers[i]))
	}
	started := make(chan error)
	for i := range brokers {
		name := fmt.Sprintf("kafka-%d", i+1)
		dir := filepath.Join(s.Dir, name)
		s.Must(os.MkdirAll(dir, 0o755))
		cert, key, err := s.Authority.Issue(dir, "localhost")
		s.Must(err)
		var pair []byte
		for _, file := range []string{key, cert} {
			text, err := os.ReadFile(file)
			s.Must(err)
			pair = append(pair, text...)
		}
		store := filepath.Join(dir, "store.pem")
		s.Must(os.WriteFile(store, pair, 0o600))
		broker := harness.Broker{
			Name: name, Dir: s.Dir, Memory: "320m", Address: k.Addresses[i], Members: brokers,
			Dialer: kafka.Dialer{Timeout: 5 * time.Second, SASLMechanism: mechanism, TLS: trust},
			Format: []string{"--add-scram", "SCRAM-SHA-512=[name=" + User + ",password=" + Password + "]"},
			Settings: fmt.Sprintf(brokerSettings, i+1, strings.Join(voters, ","), listen[i], inner[i], controllers[i], k.Addresses[i], store,
				filepath.Join(dir, "data")),
		}
		go func() {
			daemon, err := broker.Prepare(s.Context())
			if err == nil {
				k.Brokers[i] = daemon
				s.killAtEnd(daemon, daemon.Kill)
				err = daemon.Start(s.Context())
			}
			started <- err
		}()
	}
	for range brokers {
		err = errors.Join(err, <-started)
	}
	s.Must(err)
	return k
}
