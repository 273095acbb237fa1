package connection

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/semaphore"
)

func TestWhatIsDiscardedOfAClientIsPaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		var sent atomic.Int64
		go func() {
			for block := make([]byte, 64<<10); ; {
				n, err := client.Write(block)
				sent.Add(int64(n))
				if err != nil {
					return
				}
			}
		}()
		c := &Conn{Conn: server, raw: &replayConn{Conn: server}, listener: &listener{lingering: semaphore.NewWeighted(1)}}
		c.Linger()
		closed := make(chan struct{})
		go func() {
			_ = c.Close()
			close(closed)
		}()
		<-time.After(time.Millisecond)
		another, full := context.WithTimeout(t.Context(), lingerTimeout/8)
		defer full()
		if c.listener.lingering.Acquire(another, 1) == nil {
			t.Error("another connection is read at the same time")
		}
		<-time.After(lingerTimeout/8 - time.Millisecond)
		synctest.Wait()
		if got := sent.Load(); got < lingerBytes/5 || got > lingerBytes/3 {
			t.Errorf("%d bytes were read in a quarter of the time for %d", got, lingerBytes)
		}
		<-closed
		if got := sent.Load(); got < lingerBytes*9/10 {
			t.Errorf("%d bytes were read at the end, want about %d", got, lingerBytes)
		}
	})
}
