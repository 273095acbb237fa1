package backends

import (
	"context"
	"crypto/tls"
	"crypto/x509"
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

// brokerSettings are those of a broker that is a controller too. Clients connect
// with SASL and TLS; an event is acknowledged when two of three brokers have it.
const brokerSettings = `process.roles=broker,controller
node.id=%[1]d
controller.quorum.voters=%[2]s
controller.listener.names=CONTROLLER
listeners=CLIENT://%[3]s,BROKER://%[4]s,CONTROLLER://%[5]s
advertised.listeners=CLIENT://%[6]s,BROKER://%[4]s
inter.broker.listener.name=BROKER
listener.security.protocol.map=CLIENT:SASL_SSL,BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT
listener.name.client.sasl.enabled.mechanisms=SCRAM-SHA-512
listener.name.client.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.client.ssl.keystore.type=PEM
listener.name.client.ssl.keystore.location=%[7]s
log.dirs=%[8]s
default.replication.factor=3
min.insync.replicas=2
auto.create.topics.enable=false
broker.heartbeat.interval.ms=500
broker.session.timeout.ms=4000
group.initial.rebalance.delay.ms=0
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
func (s *Site) StartKafka() *Kafka {
	s.Helper()
	const brokers = 3
	java, flags, err := harness.KafkaCommand()
	s.Must(err)
	flags[0] = "-Xmx320m"
	var inner, controllers, voters []string
	k := &Kafka{}
	listen := make([]string, brokers)
	for i := range brokers {
		address, port := s.address()
		listen[i] = address
		k.Addresses = append(k.Addresses, "localhost:"+port)
		broker, _ := s.address()
		controller, _ := s.address()
		inner, controllers = append(inner, broker), append(controllers, controller)
		voters = append(voters, fmt.Sprintf("%d@%s", i+1, controller))
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
		store, settings := filepath.Join(dir, "store.pem"), filepath.Join(dir, "server.properties")
		s.Must(os.WriteFile(store, pair, 0o600))
		text := fmt.Sprintf(brokerSettings, i+1, strings.Join(voters, ","), listen[i], inner[i], controllers[i], k.Addresses[i], store,
			filepath.Join(dir, "data"))
		s.Must(os.WriteFile(settings, []byte(text), 0o600))
		format := harness.NewDaemon(name+"-format", filepath.Join(s.Dir, name+"-format.log"), nil, java, append(append([]string{}, flags...),
			"kafka.tools.StorageTool", "format", "--config", settings, "--cluster-id", "ZG9vcndhcmQgZTJlIG9uZQ",
			"--add-scram", "SCRAM-SHA-512=[name="+User+",password="+Password+"]")...)
		ready := func(ctx context.Context) error { return s.brokerAnswers(ctx, k.Addresses[i]) }
		broker := harness.NewDaemon(name, filepath.Join(s.Dir, name+".log"), ready, java,
			append(append([]string{}, flags...), "kafka.Kafka", settings)...)
		k.Brokers = append(k.Brokers, broker)
		s.Cleanup(func() {
			if s.Failed() {
				s.Log(broker.Tail())
			}
			if err := broker.Kill(); err != nil {
				s.Error(err)
			}
		})
		go func() { started <- errors.Join(format.Run(s.Context()), broker.Start(s.Context())) }()
	}
	for range brokers {
		err = errors.Join(err, <-started)
	}
	s.Must(err)
	return k
}

// brokerAnswers returns nil once a broker counts itself among the cluster's.
func (s *Site) brokerAnswers(ctx context.Context, address string) error {
	mechanism, err := scram.Mechanism(scram.SHA512, User, Password)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(s.Authority.CAFile)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	dialer := kafka.Dialer{Timeout: 5 * time.Second, SASLMechanism: mechanism, TLS: &tls.Config{RootCAs: roots, ServerName: "localhost"}}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return err
	}
	brokers, err := conn.Brokers()
	if err == nil && len(brokers) < 3 {
		err = fmt.Errorf("%d of 3 brokers are there", len(brokers))
	}
	return err
}
