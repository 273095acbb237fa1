package outbox

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/segmentio/kafka-go"
)

const (
	// sessionTimeout is how long the partitions of a killed member wait, unless a process on
	// its host joins earlier (removeDeadMembers). A broker accepts no less by default.
	sessionTimeout = 6 * time.Second
	// rebalanceTimeout is how long a member may take to finish the event at hand
	// when the partitions are shared out again.
	rebalanceTimeout = 6 * time.Second
	// partitionWatchInterval bounds how long a new partition waits for a member.
	partitionWatchInterval = 5 * time.Second
)

// heartbeatInterval bounds how long a member that joins waits for the others.
var heartbeatInterval = 2 * time.Second

// clientID is what Kafka's tools show as the client of this process's members:
// its host, its process id, and a word that no other process has.
var clientID = fmt.Sprintf("%s/%d/%s", hostname(), os.Getpid(), rand.Text()[:8])

func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return "localhost"
	}
	return name
}

// join joins the consumer group of the service and processes the partitions that the group assigns to
// this member, until the broker fails or ctx ends. Then it leaves the group, which
// reassigns its partitions at once.
func (c *consumer) join(ctx context.Context) error {
	if err := createTopics(ctx, c.client, c.cfg, c.allTopics()...); err != nil {
		return err
	}
	dialer, err := c.cfg.dialer()
	if err != nil {
		return err
	}
	group, err := kafka.NewConsumerGroup(kafka.ConsumerGroupConfig{
		ID: c.group, Brokers: c.cfg.Brokers, Topics: c.topics,
		Dialer: dialer,
		// assigns the partitions of each topic evenly
		GroupBalancers: []kafka.GroupBalancer{kafka.RangeGroupBalancer{}},
		SessionTimeout: sessionTimeout, HeartbeatInterval: heartbeatInterval, RebalanceTimeout: rebalanceTimeout,
		WatchPartitionChanges: true, PartitionWatchInterval: partitionWatchInterval,
		JoinGroupBackoff: firstBackoff, StartOffset: kafka.FirstOffset,
	})
	if err != nil {
		return err
	}
	defer func() { _ = group.Close() }()
	joined, stop := context.WithCancel(ctx)
	defer stop()
	go c.removeDeadMembers(joined)
	for {
		generation, err := group.Next(ctx)
		if errors.Is(err, kafka.RebalanceInProgress) {
			continue // the group joins again by itself
		}
		if err != nil {
			return fmt.Errorf("join the consumer group: %w", err)
		}
		stop()
		c.start(ctx, generation)
	}
}

// start starts processing the partitions that this member is assigned in a generation of the group.
func (c *consumer) start(ctx context.Context, generation *kafka.Generation) {
	for topic, assignments := range generation.Assignments {
		for _, assignment := range assignments {
			p := &partition{
				consumer: c, generation: generation, topic: topic, number: assignment.ID, committed: assignment.Offset,
			}
			p.next.Store(assignment.Offset)
			generation.Start(func(ended context.Context) {
				ctx, cancel := context.WithCancel(ctx)
				defer cancel()
				defer context.AfterFunc(ended, cancel)()
				p.process(ctx, cancel)
			})
		}
	}
}

// removeDeadMembers removes members from the group whose processes have ended on this host without
// leaving the group, so that a process that was killed and started again gets its partitions at once
// and not after sessionTimeout. It does so while this process waits to join: before, the group might
// become empty, and Kafka removes an empty group first, which takes longer. A member that was
// removed by mistake joins again.
func (c *consumer) removeDeadMembers(ctx context.Context) {
	for wait(ctx, 50*time.Millisecond) == nil {
		answer, err := c.client.DescribeGroups(ctx, &kafka.DescribeGroupsRequest{GroupIDs: []string{c.group}})
		if err != nil || len(answer.Groups) != 1 {
			continue // join reports what is wrong with the broker
		}
		waiting := false
		var dead []kafka.LeaveGroupRequestMember
		for _, member := range answer.Groups[0].Members {
			waiting = waiting || member.ClientID == clientID
			if isEndedProcess(member.ClientID) {
				dead = append(dead, kafka.LeaveGroupRequestMember{ID: member.MemberID})
			}
		}
		if waiting && len(dead) > 0 {
			_, _ = c.client.LeaveGroup(ctx, &kafka.LeaveGroupRequest{GroupID: c.group, Members: dead})
		}
	}
}

// isEndedProcess reports whether a client was a process of this host that has ended. In a container
// that was restarted, the new process may have the same process id.
func isEndedProcess(client string) bool {
	host, rest, _ := strings.Cut(client, "/")
	id, _, _ := strings.Cut(rest, "/")
	pid, err := strconv.Atoi(id)
	if err != nil || host != hostname() || client == clientID {
		return false
	}
	return pid == os.Getpid() || errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}
