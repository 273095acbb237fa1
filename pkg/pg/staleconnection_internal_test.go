package pg

import (
	"net"
	"testing"
	"time"
)

func TestAConnectionIsCheckedWhileAnotherGoroutineReadsIt(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	server, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if isReadable(conn) {
		t.Error("an idle connection is readable")
	}
	ended := make(chan error, 1)
	go func() {
		_, err := conn.Read(make([]byte, 1))
		ended <- err
	}()
	checked := make(chan bool)
	go func() {
		for range 1000 { // so that the read has begun before the last one
			isReadable(conn)
		}
		checked <- isReadable(conn)
	}()
	select {
	case readable := <-checked:
		if readable {
			t.Error("an idle connection that is being read is readable")
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the check waits for the read in progress")
	}
	server.Close()
	if <-ended == nil || !isReadable(conn) {
		t.Error("a connection that the server closed is not readable")
	}
	conn.Close()
	if !isReadable(conn) {
		t.Error("a closed connection is not readable")
	}
}
