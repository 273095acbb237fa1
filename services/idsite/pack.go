package idsite

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/storage/memory"
)

// The bounds of a fetch, against a repository that would use up the memory and the time of the
// process (decompression bomb, denial of service). The fetch of pages of 48 MB that do not compress needs some 130 MB of heap,
// and has a peak of 180 to 210 MB where the collector is in no hurry.
const (
	// maxInflated bounds the size of the objects after decompression, in bytes: whole objects,
	// deltas, and the results of deltas.
	maxInflated = 64 << 20
	// maxObjects bounds their number: each takes memory besides its content.
	maxObjects = 20_000
	// maxTrees bounds the directories and the commit, in bytes: they take several times as
	// much when they are decoded. Those of maxFiles files with paths of maxPath bytes need
	// half of it.
	maxTrees = 4 << 20
	// maxBases bounds what is read of the bases of deltas, in bytes: each delta reads
	// the whole of its base, which thousands of small ones may have in common. Git itself
	// makes no delta whose result is smaller than a 32nd part of its base.
	maxBases = 32 * maxInflated
)

var (
	errInflated = fmt.Errorf("the repository is larger than %d MB when it is inflated", maxInflated>>20)
	errObjects  = fmt.Errorf("the repository has more than %d objects", maxObjects)
	errObject   = fmt.Errorf("the repository has an object that is larger than %d MB", maxFile>>20)
	errTrees    = fmt.Errorf("the directories of the repository are larger than %d MB", maxTrees>>20)
	errBases    = errors.New("the repository has too many deltas of large files")
)

// packStorage keeps the objects of a fetch in memory. go-git's parser allocates the sizes that a
// pack declares, and a megabyte may inflate to a gigabyte, so the sizes are added up before the
// pack is parsed (checkPack).
type packStorage struct {
	*memory.Storage
	ctx   context.Context // of the fetch: go-git has none where it parses
	trees boundedSum
}

func newPackStorage(ctx context.Context) *packStorage {
	return &packStorage{Storage: memory.NewStorage(), ctx: ctx}
}

// PackfileWriter returns what go-git writes the pack of a fetch to.
func (s *packStorage) PackfileWriter() (io.WriteCloser, error) { return &pack{storage: s}, nil }

// SetEncodedObject stores an object in as much memory as it has bytes. The objects of go-git take
// more, because they grow while they are written, and are copied when they are read.
func (s *packStorage) SetEncodedObject(parsed plumbing.EncodedObject) (plumbing.Hash, error) {
	hash := parsed.Hash()
	if s.HasEncodedObject(hash) == nil {
		return hash, nil // the parser stores what some deltas result in twice
	}
	if parsed.Type() != plumbing.BlobObject {
		if err := s.trees.add(uint64(parsed.Size()), maxTrees, errTrees); err != nil {
			return plumbing.ZeroHash, err
		}
	}
	reader, err := parsed.Reader()
	if err != nil {
		return plumbing.ZeroHash, err
	}
	defer func() { _ = reader.Close() }() // it is memory
	stored := &packObject{content: make([]byte, parsed.Size()), hash: hash}
	stored.SetType(parsed.Type())
	stored.SetSize(parsed.Size())
	if _, err := io.ReadFull(reader, stored.content); err != nil {
		return plumbing.ZeroHash, err
	}
	return s.Storage.SetEncodedObject(stored)
}

// file returns the content of a file. The caller must not change it.
func (s *packStorage) file(hash plumbing.Hash) ([]byte, error) {
	found, err := s.EncodedObject(plumbing.BlobObject, hash)
	if err != nil {
		return nil, err
	}
	object, ok := found.(*packObject)
	if !ok {
		return nil, plumbing.ErrInvalidType
	}
	return object.content, nil
}

type packObject struct {
	plumbing.MemoryObject // of which the type and the size are used
	content               []byte
	hash                  plumbing.Hash
}

func (o *packObject) Hash() plumbing.Hash { return o.hash }

func (o *packObject) Reader() (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(o.content)), nil
}

// pack is the pack file that was transferred. It is kept in pieces, because a buffer that grows is
// copied and takes up to three times the memory meanwhile.
type pack struct {
	storage *packStorage
	pieces  [][]byte // each of pieceSize
	size    int64
}

// pieceSize is the size of a piece of a pack, in bytes.
const pieceSize = 256 << 10

func (p *pack) Write(content []byte) (int, error) {
	written := len(content)
	for len(content) > 0 {
		if p.size%pieceSize == 0 {
			p.pieces = append(p.pieces, make([]byte, pieceSize))
		}
		n := copy(p.pieces[len(p.pieces)-1][p.size%pieceSize:], content)
		content, p.size = content[n:], p.size+int64(n)
	}
	return written, nil
}

// ReadAt reads from the pieces. It fails once the context of the fetch has ended, which also stops
// the parser.
func (p *pack) ReadAt(into []byte, offset int64) (int, error) {
	if err := p.storage.ctx.Err(); err != nil {
		return 0, err
	}
	read := 0
	for read < len(into) && offset < p.size {
		piece := p.pieces[offset/pieceSize][:min(pieceSize, p.size-offset/pieceSize*pieceSize)]
		n := copy(into[read:], piece[offset%pieceSize:])
		read, offset = read+n, offset+int64(n)
	}
	if read < len(into) {
		return read, io.EOF
	}
	return read, nil
}

func (p *pack) scanner() *packfile.Scanner {
	return packfile.NewScanner(io.NewSectionReader(p, 0, p.size))
}

// Close parses the pack that was written, or returns an error if its objects are too large or too
// many.
func (p *pack) Close() error {
	if err := checkPack(p.scanner()); err != nil {
		return err
	}
	parser, err := packfile.NewParserWithStorage(p.scanner(), p.storage)
	if err != nil {
		return err
	}
	_, err = parser.Parse()
	return err
}

// checkPack adds up the sizes that a pack declares, and refuses the pack as soon as they exceed a
// bound. For an object that inflates to more than it declares the scanner returns an error.
func checkPack(scanner *packfile.Scanner) error {
	_, objects, err := scanner.Header()
	if err != nil {
		return err
	}
	if objects > maxObjects {
		return errObjects
	}
	var inflated, bases boundedSum
	var largest uint64
	for range objects {
		object, err := scanner.NextObjectHeader()
		if err != nil {
			return err
		}
		length := uint64(object.Length) // a negative one is large
		if err := inflated.add(length, maxInflated, errInflated); err != nil {
			return err
		}
		var start deltaPrefix
		if _, _, err := scanner.NextObject(&start); err != nil {
			return err
		}
		largest = max(largest, length)
		if !object.Type.IsDelta() {
			continue
		}
		base, result := start.deltaSizes()
		if err := errors.Join(inflated.add(result, maxInflated, errInflated), bases.add(base, maxBases, errBases)); err != nil {
			return err
		}
		largest = max(largest, result)
	}
	if largest > maxFile {
		return errObject
	}
	return nil
}

// boundedSum is a sum of bytes.
type boundedSum uint64

// add returns tooLarge where the sum would be more than bound.
func (s *boundedSum) add(size, bound uint64, tooLarge error) error {
	if size > bound-uint64(*s) {
		return tooLarge
	}
	*s += boundedSum(size)
	return nil
}

// deltaPrefix keeps the first bytes that are written to it: the two sizes at the beginning of a
// delta.
type deltaPrefix struct {
	content [2 * binary.MaxVarintLen64]byte
	length  int
}

func (p *deltaPrefix) Write(content []byte) (int, error) {
	p.length += copy(p.content[p.length:], content)
	return len(content), nil
}

// deltaSizes returns the sizes of the base and of the result of a delta, two variable-length
// integers at its beginning. The parser refuses a delta without them or with another base.
func (p *deltaPrefix) deltaSizes() (base, result uint64) {
	base, n := binary.Uvarint(p.content[:p.length])
	if n <= 0 {
		return 0, 0
	}
	result, _ = binary.Uvarint(p.content[n:p.length])
	return base, result
}
