package outbox_test

import (
	"bufio"
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/events/outbox"
	"github.com/doorward/doorward/pkg/worktest"
)

// members returns the number of partitions that the group has assigned to each
// of its members, in ascending order, as Kafka's own tools show it; nil while the
// group is not stable.
func (b *bench) members() (partitions []int) {
	b.Helper()
	answer, err := b.client().DescribeGroups(b.Context(), &kafka.DescribeGroupsRequest{GroupIDs: []string{"doorward.reader"}})
	if err != nil || len(answer.Groups) != 1 || answer.Groups[0].GroupState != "Stable" {
		return nil
	}
	for _, member := range answer.Groups[0].Members {
		n := 0
		for _, topic := range member.MemberAssignments.Topics {
			n += len(topic.Partitions)
		}
		partitions = append(partitions, n)
	}
	slices.Sort(partitions)
	return partitions
}

func (b *bench) wantMembers(want ...int) {
	b.Helper()
	var got []int
	defer func() {
		if b.Failed() {
			b.Logf("the members have %v partitions, want %v", got, want)
		}
	}()
	b.eventually("the shares of the members", func() bool {
		got = b.members()
		return slices.Equal(got, want)
	})
}

func TestReplicasShareThePartitions(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.cfg.Partitions = 7
	worktest.Start(b, b.outbox.Relay(b.cfg))
	var acted [3]atomic.Int32
	var stops [3]func()
	for i := range acted {
		stops[i] = worktest.Start(b, b.consume(events.On(func(ctx context.Context, e events.Envelope, event events.AccountDeleted) error {
			acted[i].Add(1)
			return b.outbox.InTx(ctx, func(tx *outbox.Tx) error { return effect(ctx, tx, e, event) })
		})))
		b.wantMembers([][]int{{7}, {3, 4}, {2, 2, 3}}[i]...)
	}
	accounts := b.emit(100)
	b.want(accounts)
	for i := range acted {
		if acted[i].Load() == 0 {
			t.Errorf("the replica %d acted on none of %d events", i, len(accounts))
		}
	}
	stops[1]()
	b.wantMembers(3, 4)
	stops[0]()
	b.wantMembers(7)
	b.want(append(accounts, b.emit(20)...))
	if n := len(b.effects()); n != 120 {
		t.Errorf("%d effects of 120 events", n)
	}
}

func TestEachReplicaReadsOfEveryTopic(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.cfg.Partitions = 4
	for range 2 {
		worktest.Start(b, reader(b.db).Consume(b.cfg, []string{"sender", "other"}, count(b.outbox)))
	}
	b.wantMembers(4, 4)
	answer, err := b.client().DescribeGroups(t.Context(), &kafka.DescribeGroupsRequest{GroupIDs: []string{"doorward.reader"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, member := range answer.Groups[0].Members {
		if len(member.MemberAssignments.Topics) != 2 {
			t.Errorf("a member reads %+v, want partitions of both topics", member.MemberAssignments.Topics)
		}
	}
}

func TestMoreReplicasThanPartitions(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	worktest.Start(b, b.outbox.Relay(b.cfg))
	for range 5 {
		worktest.Start(b, b.consumer())
	}
	b.wantMembers(0, 0, 1, 1, 1)
	b.want(b.emit(20))
}

func TestReplicasComeAndGoWhileEventsCome(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.cfg.Partitions = 6
	worktest.Start(b, b.outbox.Relay(b.cfg))
	worktest.Start(b, b.consumer())
	accounts := b.emit(20)
	for range 5 {
		stop := worktest.Start(b, b.consumer())
		accounts = append(accounts, b.emit(40)...)
		stop()
		accounts = append(accounts, b.emit(40)...)
	}
	b.want(accounts)
	if n := len(b.effects()); n != len(accounts) {
		t.Errorf("%d effects of %d events", n, len(accounts))
	}
}

func TestAnotherReplicaTakesOverWhenOneIsKilled(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	worktest.Start(b, b.outbox.Relay(b.cfg))
	killed := b.child("consume")
	first := b.emit(20)
	b.want(first)
	worktest.Start(b, b.consumer())
	b.wantMembers(1, 2)
	died := time.Now()
	_ = killed.Process.Kill()
	_ = killed.Wait()
	b.wantMembers(3)
	b.want(append(first, b.emit(20)...))
	t.Logf("the partitions of a killed replica were read again after %s", time.Since(died).Round(time.Millisecond))
}

// The session of the killed process lasts for six seconds.
func TestAKilledReplicaThatStartsAgainGoesOnAtOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	killed := b.child("consume")
	b.wantMembers(3)
	_ = killed.Process.Kill()
	_ = killed.Wait()
	accounts := b.relayed(20)
	started := time.Now()
	worktest.Start(b, b.consumer())
	b.want(accounts)
	if took := time.Since(started); took > 4*time.Second {
		t.Errorf("the next process of the host began after %s", took)
	}
	b.wantMembers(3)
}

func TestAConsumerIsKilledBetweenItsEffectAndTheCommit(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	accounts := b.relayed(20)
	for range 3 {
		consumer := b.prepare("stall")
		out, err := consumer.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := consumer.Start(); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(out).ReadString('\n')
		if err != nil || line != "an effect\n" {
			t.Fatalf("the consumer says %q, %v", line, err)
		}
		_ = consumer.Process.Kill()
		_ = consumer.Wait()
	}
	if n := len(b.effects()); n != 0 {
		t.Fatalf("%d effects were committed", n)
	}
	worktest.Start(b, b.consumer())
	b.want(accounts)
}

func TestAConsumerIsKilledAgainAndAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	accounts := b.relayed(600)
	kills := 0
	for done := 0; done < len(accounts); kills++ {
		consumer := b.child("consume")
		b.eventually("more effects", func() bool { return len(b.effects()) > min(done+20, len(accounts)-1) })
		_ = consumer.Process.Kill()
		_ = consumer.Wait()
		done = len(b.effects())
	}
	t.Logf("%d kills", kills)
	b.want(accounts)
	if n := len(b.effects()); n != len(accounts) {
		t.Errorf("%d effects of %d events", n, len(accounts))
	}
}

// A member that was held up while another one took its partition has no second
// effect.
func TestTwoMembersAtWorkOnAnEventHaveOneEffect(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	accounts := b.relayed(1)
	calls, release := make(chan string, 2), make(chan struct{})
	held := func(name string) events.Handler {
		return events.On(func(ctx context.Context, e events.Envelope, event events.AccountDeleted) error {
			calls <- name
			select {
			case <-release:
			case <-t.Context().Done():
				return t.Context().Err()
			}
			ctx = context.WithoutCancel(ctx)
			return b.outbox.InTx(ctx, func(tx *outbox.Tx) error { return effect(ctx, tx, e, event) })
		})
	}
	worktest.Start(b, b.consume(held("first")))
	if name := <-calls; name != "first" {
		t.Fatal(name)
	}
	b.removeMembers()
	worktest.Start(b, b.consume(held("second")))
	if name := <-calls; name != "second" {
		t.Fatal(name)
	}
	close(release)
	b.want(accounts)
	b.eventually("the offset", func() bool { return b.committed() == 1 })
	b.want(accounts)
}

// removeMembers removes all members from the group, as the broker removes those
// that it has not heard of for too long.
func (b *bench) removeMembers() {
	b.Helper()
	answer, err := b.client().DescribeGroups(b.Context(), &kafka.DescribeGroupsRequest{GroupIDs: []string{"doorward.reader"}})
	if err != nil {
		b.Fatal(err)
	}
	request := &kafka.LeaveGroupRequest{GroupID: "doorward.reader"}
	for _, member := range answer.Groups[0].Members {
		request.Members = append(request.Members, kafka.LeaveGroupRequestMember{ID: member.MemberID})
	}
	if _, err := b.client().LeaveGroup(b.Context(), request); err != nil {
		b.Fatal(err)
	}
}

func TestAMemberThatWasRemovedJoinsAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	worktest.Start(b, b.outbox.Relay(b.cfg))
	worktest.Start(b, b.consumer())
	first := b.emit(20)
	b.want(first)
	b.wantMembers(3)
	b.removeMembers()
	b.want(append(first, b.emit(20)...))
	b.wantMembers(3)
}

func TestAStoppedMemberLeavesTheGroupAtOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	worktest.Start(b, b.outbox.Relay(b.cfg))
	stop := worktest.Start(b, b.consumer())
	b.want(b.emit(20))
	stop()
	answer, err := b.client().DescribeGroups(t.Context(), &kafka.DescribeGroupsRequest{GroupIDs: []string{"doorward.reader"}})
	if err != nil || len(answer.Groups[0].Members) != 0 {
		t.Errorf("after its stop the member is in the group: %+v, %v", answer.Groups, err)
	}
	if n := b.committed(); n != 20 {
		t.Errorf("a member that left has committed %d of 20 events", n)
	}
}
