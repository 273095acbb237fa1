package backends

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/doorward/doorward/deploy/e2e/harness"
	"github.com/doorward/doorward/pkg/redisclient"
	"github.com/doorward/doorward/pkg/secure"
)

// permissions are the least privileges (ACL) that the product's user of Redis needs.
var permissions = []string{
	"resetchannels", "&doorward:*", "-@all", "+hello", "+ping", "+client", "+publish", "+subscribe", "+unsubscribe",
	"+cluster|slots", "+cluster|shards", "+command", "+readonly", "+info", // for a Cluster
}

// administrator is the user with which the servers of Redis connect to each other.
const administrator = "replica"

// Redis is a server that takes only encrypted connections of users with a password.
type Redis struct {
	*harness.Daemon
	Port string
}

// tlsSettings are the first settings of a server: its port, certificate, key, authority and folder.
const tlsSettings = `bind 127.0.0.1
port 0
tls-port %[1]s
tls-cert-file %[2]s
tls-key-file %[3]s
tls-ca-cert-file %[4]s
tls-auth-clients no
tls-replication yes
dir %[5]s
user default off
`

// StartRedis starts a server, or one of another kind by its arguments.
func (s *Servers) StartRedis(name string, args ...string) *Redis {
	s.Helper()
	dir := s.folder(name)
	port := strconv.Itoa(harness.FreePort())
	cert, key := s.certificate(dir, "localhost", "127.0.0.1")
	s.Must(os.Chmod(s.Authority.CAFile, 0o644))
	config := dir + "/redis.conf"
	s.Write(config, fmt.Sprintf(tlsSettings, port, cert, key, s.Authority.CAFile, dir)+`tls-cluster yes
user `+administrator+` on >`+Password+` ~* &* +@all
user `+User+` on >`+Password+` `+strings.Join(permissions, " ")+`
`)
	r := &Redis{Port: port}
	program := "redis-server"
	r.Daemon = s.start(name, func(ctx context.Context) error { return s.answers(ctx, "rediss://"+s.User()+"127.0.0.1:"+port) },
		program, append([]string{config}, args...)...)
	return r
}

// StartClusterNode starts a server that can become a node of a Cluster.
func (s *Servers) StartClusterNode(name string) *Redis {
	s.Helper()
	return s.StartRedis(name, "--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(harness.FreePort()), "--cluster-node-timeout", "2000",
		"--cluster-replica-validity-factor", "0", "--masteruser", administrator, "--masterauth", Password, "--save", "")
}

// CLI runs redis-cli as an administrator.
func (s *Servers) CLI(args ...string) string {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), limit)
	defer cancel()
	args = append([]string{"--tls", "--cacert", s.Authority.CAFile, "--user", administrator, "--no-auth-warning"}, args...)
	cmd := exec.CommandContext(ctx, "redis-cli", args...)
	cmd.Env = append(os.Environ(), "REDISCLI_AUTH="+Password)
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.Fatalf("redis-cli %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// StartReplica starts a replica of a server.
func (s *Servers) StartReplica(name string, of *Redis) *Redis {
	s.Helper()
	return s.StartRedis(name, "--replicaof", "127.0.0.1", of.Port, "--masteruser", administrator, "--masterauth", Password)
}

// Group is the name under which Sentinel watches a server.
const Group = "main"

// StartSentinel starts a Sentinel that watches a server with others like it, of which
// so many have to agree.
func (s *Servers) StartSentinel(name string, of *Redis, quorum int) (port string) {
	s.Helper()
	dir := s.folder(name)
	port = strconv.Itoa(harness.FreePort())
	cert, key := s.certificate(dir, "localhost", "127.0.0.1")
	s.Write(dir+"/sentinel.conf", fmt.Sprintf(tlsSettings+`user %[6]s on >%[7]s allchannels +@all
user %[8]s on >%[7]s allchannels -@all +hello +ping +client +subscribe +unsubscribe +sentinel
sentinel sentinel-user %[6]s
sentinel sentinel-pass %[7]s
sentinel monitor %[9]s 127.0.0.1 %[10]s %[11]d
sentinel auth-user %[9]s %[6]s
sentinel auth-pass %[9]s %[7]s
sentinel down-after-milliseconds %[9]s 2000
sentinel failover-timeout %[9]s 10000
`, port, cert, key, s.Authority.CAFile, dir, administrator, Password, User, Group, of.Port, quorum))
	s.start(name, func(context.Context) error { return accepts("127.0.0.1:" + port) }, "redis-server", dir+"/sentinel.conf", "--sentinel")
	return port
}

// User is the product's user as an address has it.
func (s *Servers) User() string { return User + ":" + Password + "@" }

func (s *Servers) answers(ctx context.Context, address string) error {
	client := s.Redis(address)
	defer client.Close()
	return client.Ping(ctx).Err()
}

// Redis opens an address as the product does.
func (s *Servers) Redis(address string) redisclient.Client {
	s.Helper()
	authority, err := os.ReadFile(s.Authority.CAFile)
	s.Must(err)
	client, err := redisclient.Open(redisclient.Config{URL: secure.Secret(address), CA: string(authority)})
	s.Must(err)
	return client
}

// Arrives waits until a message that is published at an address is received there, as the
// reports of gateways are.
func (s *Servers) Arrives(client redisclient.Client) {
	s.Helper()
	subscription := client.Subscribe(s.Context(), "doorward:gateway:usage")
	defer subscription.Close()
	messages := subscription.Channel()
	s.Await("a message that was published", func(ctx context.Context) error {
		if err := client.Publish(ctx, "doorward:gateway:usage", "here").Err(); err != nil {
			return err
		}
		select {
		case <-messages:
			return nil
		case <-time.After(50 * time.Millisecond):
			return errors.New("it has not arrived")
		}
	})
}
