package privateserver

import (
	"encoding/binary"
	"io"
	"net"
	"testing"
)

// A client that has not authenticated itself must not make the embedded broker reserve memory.
func TestARequestToTheBrokerIsBounded(t *testing.T) {
	listener, err := listenKafka("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	for size, taken := range map[uint32]bool{5: true, maxKafkaFrame + 1: false, 1 << 31: false} {
		client, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		frame := binary.BigEndian.AppendUint32(nil, size)
		for range 2 { // the second request begins where the first one ends
			if _, err := client.Write(append(frame, "hello"...)); err != nil {
				t.Fatal(err)
			}
		}
		server, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			announced, body := make([]byte, 4), make([]byte, 5)
			_, err := io.ReadFull(server, announced)
			if (err == nil) != taken {
				t.Errorf("a request that announces %d bytes is read with the error %v, want taken: %t", size, err, taken)
			}
			if !taken {
				break
			}
			if _, err := io.ReadFull(server, body); err != nil || string(body) != "hello" {
				t.Errorf("the request is %q, %v, want hello", body, err)
			}
		}
		_, _ = client.Close(), server.Close()
	}
}
