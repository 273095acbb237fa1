package failover

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/deploy/e2e/backends"
)

// TestRedisCluster ends the node to which the subscriptions are bound, and expects
// another one to deliver them.
func TestRedisCluster(t *testing.T) {
	s := backends.NewServers(t)
	nodes := map[string]*backends.Redis{}
	var addresses []string
	for _, name := range []string{"one", "two", "three", "four", "five", "six"} {
		node := s.StartClusterNode(name)
		nodes[node.Port] = node
		addresses = append(addresses, "127.0.0.1:"+node.Port)
	}
	s.CLI(append([]string{"--cluster-replicas", "1", "--cluster-yes", "--cluster", "create"}, addresses...)...)
	client := s.Redis("rediss+cluster://" + s.User() + strings.Join(addresses[:3], ","))
	defer client.Close()
	s.Await("the cluster to be formed", func(ctx context.Context) error { return client.Publish(ctx, "doorward:gateway:usage", "here").Err() })
	s.Arrives(client)

	slot := strings.TrimSpace(s.CLI("-p", firstPort(addresses), "cluster", "keyslot", "doorward:gateway:usage"))
	subscription := client.Subscribe(t.Context(), "doorward:gateway:usage")
	defer subscription.Close()
	messages := subscription.Channel()
	owner := ownerOf(t, s.CLI("-p", firstPort(addresses), "cluster", "nodes"), slot)
	s.Must(nodes[owner].Kill())
	began := time.Now()
	s.Await("a message after the end of a node", func(ctx context.Context) error {
		_ = client.Publish(ctx, "doorward:gateway:usage", "here").Err()
		select {
		case <-messages:
		case <-time.After(50 * time.Millisecond):
			return errors.New("it has not arrived")
		}
		return client.Publish(ctx, "doorward:gateway:usage", "here").Err()
	})
	t.Logf("the first message and the first publication without an error %.1f s after the end of the node", time.Since(began).Seconds())
	s.Arrives(client)
}

func firstPort(addresses []string) string { return strings.TrimPrefix(addresses[0], "127.0.0.1:") }

// ownerOf returns the port of the node that owns a slot, of what CLUSTER NODES says.
func ownerOf(t *testing.T, nodes, slot string) (port string) {
	for line := range strings.Lines(nodes) {
		fields := strings.Fields(line)
		for _, slots := range fields[min(8, len(fields)):] {
			from, to, _ := strings.Cut(slots, "-")
			if number(from) <= number(slot) && number(slot) <= number(to) {
				_, rest, _ := strings.Cut(fields[1], ":")
				port, _, _ = strings.Cut(rest, "@")
				return port
			}
		}
	}
	t.Fatalf("no node owns the slot %s\n%s", slot, nodes)
	return ""
}

func number(text string) int {
	n, _ := strconv.Atoi(text)
	return n
}
