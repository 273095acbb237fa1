package listen_test

import (
	"testing"

	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/worktest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func open(t *testing.T, url string) *pg.DB {
	t.Helper()
	db, err := pg.Open(t.Context(), pg.Config{URL: secure.Secret(url), Schema: "listens"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

// heard counts the notifications that a database handle receives on a channel.
func heard(db *pg.DB, channel string) <-chan string {
	payloads := make(chan string, 100)
	db.OnNotify(channel, func(payload string) { payloads <- payload })
	return payloads
}

// awaitHeard notifies a channel until the payload arrives.
func awaitHeard(t *testing.T, db *pg.DB, channel, payload string, payloads <-chan string) {
	t.Helper()
	worktest.Await(t, payload+" on the channel "+channel, func() bool {
		if _, err := pg.Exec(t.Context(), db, `SELECT pg_notify($1, $2)`, channel, payload); err != nil {
			t.Fatal(err)
		}
		select {
		case got := <-payloads:
			return got == payload
		default:
			return false
		}
	})
}

// The services of a process have one connection for the notifications of a database,
// until the last of them ends.
func TestServicesOfAProcessListenOverOneConnection(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t, nil)
	first, second := open(t, url), open(t, url)
	listening := func() int {
		n, err := pg.Value[int](t.Context(), first,
			`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'doorward-listen'`)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	ofFirst, ofSecond := heard(first, "first"), heard(second, "second")
	stopFirst := worktest.Start(t, first.Listen)
	awaitHeard(t, second, "first", "before the second listens", ofFirst)
	stopSecond := worktest.Start(t, second.Listen)
	awaitHeard(t, first, "second", "beside the first", ofSecond)
	awaitHeard(t, second, "first", "beside the second", ofFirst)
	if n := listening(); n != 1 {
		t.Errorf("%d connections listen, want 1", n)
	}
	stopFirst()
	awaitHeard(t, first, "second", "after the first", ofSecond)
	stopSecond()
	worktest.Await(t, "the connection to be closed", func() bool { return listening() == 0 })
	worktest.Start(t, first.Listen)
	awaitHeard(t, second, "first", "once more", ofFirst)
}
