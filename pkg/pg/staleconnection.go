package pg

import (
	"context"
	"errors"
	"net"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// mayBeClosed reports whether a pooled connection is to be pinged before it is
// used: it was idle for a while, as those whose machine has gone, or the server has
// sent something, as it does when it closes a connection. So the connections that
// a restart of the server has closed fail no request.
func shouldPing(_ context.Context, idle pgxpool.ShouldPingParams) bool {
	return idle.IdleDuration > time.Second || isReadable(idle.Conn.PgConn().Conn())
}

// isReadable reports whether a read would return at once, without reading.
func isReadable(conn net.Conn) bool {
	if secured, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = secured.NetConn()
	}
	socket, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return true
	}
	readable := true
	// Control, unlike Read, does not wait for the driver's background reader, which
	// holds the lock of reads for as long as the server says nothing.
	err = raw.Control(func(fd uintptr) {
		_, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		readable = !errors.Is(err, syscall.EAGAIN)
	})
	return err != nil || readable
}
