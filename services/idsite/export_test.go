package idsite

import (
	"context"
	"io"
)

// NewPack returns what the pack of a fetch is written to.
func NewPack(ctx context.Context) (io.WriteCloser, error) {
	return newPackStorage(ctx).PackfileWriter()
}

// StartDue and Wait are the parts of FetchDue: the one starts what is due, the other waits for it.
func (r *Repositories) StartDue(ctx context.Context) (started int, err error) { return r.startDue(ctx) }

// Wait waits for the fetches that were started.
func (r *Repositories) Wait() { r.running.Wait() }
