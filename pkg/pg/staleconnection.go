package pg

import (
	"context"
	"errors"
	"net"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// shouldPing reports whether a connection of the pool must be pinged before it is used, because it may
// be closed (stale): it was idle for more than a second, or the server has sent something, as it
// does when it closes a connection. So a restart of the server does not fail a request by a closed
// connection.
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
