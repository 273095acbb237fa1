package idsite

import (
	"context"
	"io"
)

// NewPack returns what the pack of a fetch is written to.
func NewPack(ctx context.Context) (io.WriteCloser, error) {
	return newPackStorage(ctx).PackfileWriter()
}
