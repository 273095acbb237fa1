package rest_test

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

func TestStrength(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	strength := b.Get(b.Get(b.directory("Staff")).Want(200).Href("passwordPolicy")).Want(200).Href("strength")
	read := b.Get(strength).Want(200).Golden("strength")
	b.clock.Move(time.Minute)
	b.Post(
		strength, `{"minLength":10,"maxLength":"64","minLowerCase":2,"minUpperCase":0,"minNumeric":3,"minSymbol":4,"minDiacritic":5,"preventReuse":"6","href":"x"}`).
		Want(200).Golden("strength_updated")
	b.Post(strength, string(read.Body)).Want(200)
	b.Get(strength).Want(200).Golden("strength")
}

func TestStrengthLimits(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	strength := passwordPolicy(b.directory("Staff")) + "/strength"
	b.Post(strength, `{"minLength":1,"maxLength":255,"minLowerCase":0,"minUpperCase":0,"minNumeric":0}`).Want(200)
	for _, bound := range []struct {
		name              string
		least, most, back int
	}{
		{"minLength", 1, 255, 1}, {"maxLength", 1, 255, 255}, {"minLowerCase", 0, 255, 0}, {"minUpperCase", 0, 255, 0},
		{"minNumeric", 0, 255, 0}, {"minSymbol", 0, 255, 0}, {"minDiacritic", 0, 255, 0}, {"preventReuse", 0, 25, 0},
	} {
		set := func(value any) string { return fmt.Sprintf(`{%q:%v}`, bound.name, value) }
		b.Post(strength, set(bound.least-1)).WantError(400, 2009)
		b.Post(strength, set(bound.most+1)).WantError(400, 2010)
		b.Post(strength, set("null")).WantError(400, 2000)
		b.Post(strength, set(`"many"`)).WantError(400, 2004)
		b.Post(strength, set(2.5)).WantError(400, 2004)
		for _, value := range []int{bound.least, bound.most, bound.back} {
			if got := b.Post(strength, set(fmt.Sprintf(`"%d"`, value))).Want(200).Int(bound.name); got != value {
				t.Errorf("%s is %d, want %d", bound.name, got, value)
			}
		}
	}
	b.Post(strength, `{"resetTokenTtl":8}`).WantError(400, 2015)
	b.Delete(strength).WantError(405, 1100)
}

func TestStrengthContradictions(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	strength := passwordPolicy(b.directory("Staff")) + "/strength"
	for _, c := range []struct {
		body    string
		refused bool
	}{
		{`{"minLength":101}`, true}, // above the maxLength that is there
		{`{"maxLength":7}`, true},   // below the minLength that is there
		{`{"minLength":20,"maxLength":19}`, true},
		{`{"minLength":20,"maxLength":20}`, false},
		{`{"minSymbol":18}`, true},                   // with one of three classes, 21
		{`{"minSymbol":17}`, false},                  // 20
		{`{"minDiacritic":1}`, true},                 // 21
		{`{"minLength":1,"maxLength":19}`, true},     // 20 of 19
		{`{"minDiacritic":1,"minNumeric":0}`, false}, // 20
		{`{"minLowerCase":255,"minUpperCase":255,"minNumeric":255,"minSymbol":255,"minDiacritic":255}`, true},
	} {
		if c.refused {
			b.Post(strength, c.body).WantError(400, 6400)
		} else {
			b.Post(strength, c.body).Want(200)
		}
	}
	b.Get(strength).Want(200).Golden("strength_consistent")
}

// Each of the two updates is fine alone, and together they contradict.
func TestParallelUpdatesOfStrengthNeverContradict(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	strength := passwordPolicy(b.directory("Staff")) + "/strength"
	for range 10 {
		b.Post(strength, `{"minLength":8,"maxLength":100,"minSymbol":0}`).Want(200)
		var group sync.WaitGroup
		statuses := make(chan int, 20)
		for i := range cap(statuses) {
			body := []string{`{"minLength":50}`, `{"maxLength":40}`}[i%2]
			group.Go(func() { statuses <- b.Post(strength, body).Status })
		}
		group.Wait()
		close(statuses)
		count := map[int]int{}
		for status := range statuses {
			count[status]++
		}
		if count[200] != 10 || count[400] != 10 {
			t.Fatalf("answers by status: %v; want those of one side 200, those of the other 400", count)
		}
		if now := b.Get(strength).Want(200); now.Int("minLength") > now.Int("maxLength") {
			t.Fatalf("minLength %d exceeds maxLength %d", now.Int("minLength"), now.Int("maxLength"))
		}
	}
}

func TestParallelUpdatesOfAPolicyAndItsStrengthAreBothKept(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	policy := passwordPolicy(b.directory("Staff"))
	var group sync.WaitGroup
	for i := range 20 {
		group.Go(func() { b.Post(policy, fmt.Sprintf(`{"resetTokenTtl":%d}`, 100+i)) })
		group.Go(func() { b.Post(policy+"/strength", fmt.Sprintf(`{"minLength":%d}`, 20+i)) })
	}
	group.Wait()
	if ttl, least := b.Get(policy).Int("resetTokenTtl"), b.Get(policy+"/strength").
		Int("minLength"); ttl < 100 || least < 20 {
		t.Fatalf("resetTokenTtl is %d and minLength %d; one update undid another", ttl, least)
	}
}
