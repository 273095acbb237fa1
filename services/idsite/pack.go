package idsite

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/storage/memory"
)

// maxInflated bounds what the objects of a fetch take when they are inflated, in bytes:
// those that are whole, deltas, and what deltas result in. maxObjects bounds the number
// of objects, each of which takes memory besides its content, and that of the entries
// of directories.
const (
	maxInflated = 64 << 20
	maxObjects  = 20_000
)

var (
	errInflated = fmt.Errorf("the repository is larger than %d MB when it is inflated", maxInflated>>20)
	errObjects  = fmt.Errorf("the repository has more than %d objects", maxObjects)
)

// packStorage keeps the objects of a fetch in memory. go-git's parser allocates what a
// pack declares, and a megabyte of it may inflate to a gigabyte, so the sizes are
// summed up before the pack is parsed.
type packStorage struct{ *memory.Storage }

// PackfileWriter returns what go-git writes the pack of a fetch to.
func (s packStorage) PackfileWriter() (io.WriteCloser, error) { return &pack{objects: s.Storage}, nil }

type pack struct {
	bytes.Buffer
	objects *memory.Storage
}

// Close parses the pack that was written. One whose objects are too large or too many
// is refused.
func (p *pack) Close() error {
	if err := checkPack(p.Bytes()); err != nil {
		return err
	}
	parser, err := packfile.NewParserWithStorage(packfile.NewScanner(bytes.NewReader(p.Bytes())), p.objects)
	if err != nil {
		return err
	}
	_, err = parser.Parse()
	return err
}

// checkPack adds up the sizes that a pack declares, and refuses it as soon as they are
// beyond the bounds. What inflates to more than it declares is an error of the scanner.
func checkPack(content []byte) error {
	scanner := packfile.NewScanner(bytes.NewReader(content))
	_, objects, err := scanner.Header()
	if err != nil {
		return err
	}
	if objects > maxObjects {
		return errObjects
	}
	var total inflated
	for range objects {
		object, err := scanner.NextObjectHeader()
		if err != nil {
			return err
		}
		if err := total.add(uint64(object.Length)); err != nil { // a negative length is a large one
			return err
		}
		var start prefix
		if _, _, err := scanner.NextObject(&start); err != nil {
			return err
		}
		if !object.Type.IsDelta() {
			continue
		}
		if err := total.add(start.deltaResult()); err != nil {
			return err
		}
	}
	return nil
}

// inflated is a number of bytes within maxInflated.
type inflated uint64

func (i *inflated) add(size uint64) error {
	if size > maxInflated-uint64(*i) {
		return errInflated
	}
	*i += inflated(size)
	return nil
}

// prefix keeps the first bytes that are written to it: as many as the two sizes take
// that a delta begins with.
type prefix struct {
	content [2 * binary.MaxVarintLen64]byte
	length  int
}

func (p *prefix) Write(content []byte) (int, error) {
	p.length += copy(p.content[p.length:], content)
	return len(content), nil
}

// deltaResult returns the size of what a delta results in: the second number of its
// beginning, after the size of its base. Both are variable-length integers. The parser
// refuses a delta without them.
func (p *prefix) deltaResult() uint64 {
	_, n := binary.Uvarint(p.content[:p.length])
	if n <= 0 {
		return 0
	}
	size, _ := binary.Uvarint(p.content[n:p.length])
	return size
}
