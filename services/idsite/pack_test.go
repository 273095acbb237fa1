package idsite_test

import (
	"bytes"
	"compress/zlib"
	"context"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/doorward/doorward/pkg/clocktest"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/services/idsite"
	"github.com/doorward/doorward/services/idsite/idsitetest"
	"github.com/doorward/doorward/services/idsite/store"
)

// object is an object of a pack.
type object struct {
	kind     plumbing.ObjectType
	declared int64         // size that its header declares
	base     plumbing.Hash // of a REF_DELTA
	before   int           // of an OFS_DELTA: how many objects before this one its base is
	text     string
	zeros    int64 // how many zeros follow the text
}

func whole(kind plumbing.ObjectType, text string) object {
	return object{kind: kind, declared: int64(len(text)), text: text}
}

func zeros(kind plumbing.ObjectType, size int64) object {
	return object{kind: kind, declared: size, zeros: size}
}

type zero struct{}

func (zero) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func hashOf(kind plumbing.ObjectType, content string) plumbing.Hash {
	return plumbing.ComputeHash(kind, []byte(content))
}

// delta is the content of one: the sizes of its base and of its result, and commands.
func delta(base, result uint64, commands string) string {
	return string(binary.AppendUvarint(binary.AppendUvarint(nil, base), result)) + commands
}

const maxTrees = 4 << 20

// The command \x80 copies the first 64 kB of the base.
const (
	copied   = 64 << 10
	copyBase = "\x80"
)

// entry is a line of a directory.
func entry(mode, name string, hash plumbing.Hash) string {
	return mode + " " + name + "\x00" + string(hash[:])
}

// packOf writes a pack of objects that declares count of them.
func packOf(t *testing.T, count int, objects ...object) []byte {
	t.Helper()
	var pack bytes.Buffer
	pack.WriteString("PACK\x00\x00\x00\x02")
	pack.Write(binary.BigEndian.AppendUint32(nil, uint32(count)))
	offsets := make([]int, len(objects))
	for i, o := range objects {
		offsets[i] = pack.Len()
		first, rest := byte(o.kind)<<4|byte(o.declared&15), o.declared>>4
		if rest > 0 {
			pack.WriteByte(first | 0x80)
			pack.Write(binary.AppendUvarint(nil, uint64(rest)))
		} else {
			pack.WriteByte(first)
		}
		switch o.kind {
		case plumbing.REFDeltaObject:
			pack.Write(o.base[:])
		case plumbing.OFSDeltaObject:
			pack.Write(offset(offsets[i] - offsets[i-o.before]))
		}
		deflated, err := zlib.NewWriterLevel(&pack, zlib.BestSpeed)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(deflated, io.MultiReader(strings.NewReader(o.text), io.LimitReader(zero{}, o.zeros))); err != nil {
			t.Fatal(err)
		}
		if err := deflated.Close(); err != nil {
			t.Fatal(err)
		}
	}
	sum := sha1.Sum(pack.Bytes())
	pack.Write(sum[:])
	return pack.Bytes()
}

// deltasOf returns deltas of a file of zeros, each of which results in one byte.
func deltasOf(count int, size int64) []object {
	o := whole(plumbing.REFDeltaObject, delta(uint64(size), 1, "\x01x"))
	o.base = hashOf(plumbing.BlobObject, strings.Repeat("\x00", int(size)))
	return slices.Repeat([]object{o}, count)
}

// offset writes a distance as an OFS_DELTA has it.
func offset(distance int) []byte {
	bytes := []byte{byte(distance & 0x7f)}
	for distance >>= 7; distance > 0; distance >>= 7 {
		distance--
		bytes = append([]byte{byte(distance&0x7f) | 0x80}, bytes...)
	}
	return bytes
}

// commitOf returns a commit of a directory.
func commitOf(tree plumbing.Hash) (plumbing.Hash, object) {
	text := "tree " + tree.String() + "\nauthor Jo <jo@example.test> 0 +0000\ncommitter Jo <jo@example.test> 0 +0000\n\npages\n"
	return hashOf(plumbing.CommitObject, text), whole(plumbing.CommitObject, text)
}

// line is text as the protocol of git frames it.
func line(text string) string { return fmt.Sprintf("%04x%s", len(text)+4, text) }

// packServer serves a repository whose branch is at a commit, with the pack given.
func packServer(t *testing.T, head plumbing.Hash, pack []byte) (address string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
			_, _ = io.WriteString(w, line("# service=git-upload-pack\n")+"0000"+line(head.String()+" HEAD\x00shallow ofs-delta\n")+
				line(head.String()+" refs/heads/master\n")+"0000")
			return
		}
		w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
		_, _ = io.WriteString(w, line("shallow "+head.String()+"\n")+"0000"+line("NAK\n"))
		_, _ = w.Write(pack)
	}))
	t.Cleanup(server.Close)
	return server.URL + "/pages.git"
}

// ending is a context that ends when it has been asked for the given number of times.
type ending struct {
	context.Context
	left, asked int
}

func (e *ending) Err() error {
	if e.asked++; e.asked > e.left {
		return context.Canceled
	}
	return nil
}

func TestTheParserOfAPackEndsWithItsContext(t *testing.T) {
	const size, deltas = 1 << 20, 1000
	content := packOf(t, deltas+1, append(deltasOf(deltas, size), zeros(plumbing.BlobObject, size))...)
	parse := func(ctx context.Context) error {
		pack, err := idsite.NewPack(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := pack.Write(content); err != nil {
			t.Fatal(err)
		}
		return pack.Close()
	}
	whole := &ending{t.Context(), math.MaxInt, 0}
	if err := parse(whole); err != nil || whole.asked < deltas {
		t.Fatalf("the parser has asked %d times whether %d deltas are still wanted: %v", whole.asked, deltas, err)
	}
	for _, left := range []int{0, 1, whole.asked / 2, whole.asked - 1} {
		ctx := &ending{t.Context(), left, 0}
		if err := parse(ctx); !errors.Is(err, context.Canceled) || ctx.asked != left+1 {
			t.Errorf("a context that ended after %d reads was asked %d times: %v", left, ctx.asked, err)
		}
	}
}

func TestARepositoryIsBoundedBeforeItIsInflated(t *testing.T) {
	svc, _ := newService(t, idsitetest.New(t, &clocktest.Clock{}))
	at, fetcher := newSite(t, svc), fetchLocally(t, svc)
	// fetch returns how a fetch ended, and the bytes that it has allocated.
	fetch := func(t *testing.T, address string) (store.Site, uint64) {
		t.Helper()
		if _, err := svc.UpdateSite(t.Context(), at, idsite.SiteChange{GitRepoURL: field.Some(address)}); err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if err := fetcher.FetchDue(t.Context()); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		site, err := svc.Site(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		return site, after.TotalAlloc - before.TotalAlloc
	}

	t.Run("whole objects and both kinds of deltas are read", func(t *testing.T) {
		base := strings.Repeat("x", copied)
		tree := entry("100644", "base.txt", hashOf(plumbing.BlobObject, base)) +
			entry("100644", "by-hash.txt", hashOf(plumbing.BlobObject, base+"y")) +
			entry("100644", "by-offset.txt", hashOf(plumbing.BlobObject, base+base))
		head, commit := commitOf(hashOf(plumbing.TreeObject, tree))
		byHash := whole(plumbing.REFDeltaObject, delta(copied, copied+1, copyBase+"\x01y"))
		byHash.base = hashOf(plumbing.BlobObject, base)
		byOffset := whole(plumbing.OFSDeltaObject, delta(copied, 2*copied, copyBase+copyBase))
		byOffset.before = 2
		pack := packOf(t, 5, commit, whole(plumbing.TreeObject, tree), whole(plumbing.BlobObject, base), byHash, byOffset)
		if site, _ := fetch(t, packServer(t, head, pack)); site.GitStatus != store.GitOK {
			t.Fatalf("the status is %s, %v", site.GitStatus, *site.GitMessage)
		}
		for path, want := range map[string]string{"base.txt": base, "by-hash.txt": base + "y", "by-offset.txt": base + base} {
			if file, err := svc.SiteFile(t.Context(), at.Tenant, path); err != nil || string(file.Content) != want {
				t.Errorf("%s has %d bytes, %v", path, len(file.Content), err)
			}
		}
	})

	t.Run("files that are not compressed take little more than their size", func(t *testing.T) {
		const files, size = 8, 4 << 20
		random := rand.NewChaCha8([32]byte{})
		var objects []object
		var tree string
		for i := range files {
			content := make([]byte, size)
			if _, err := random.Read(content); err != nil {
				t.Fatal(err)
			}
			objects = append(objects, whole(plumbing.BlobObject, string(content)))
			tree += entry("100644", strconv.Itoa(i), hashOf(plumbing.BlobObject, string(content)))
		}
		head, commit := commitOf(hashOf(plumbing.TreeObject, tree))
		pack := packOf(t, files+2, append(objects, commit, whole(plumbing.TreeObject, tree))...)
		site, allocated := fetch(t, packServer(t, head, pack))
		if site.GitStatus != store.GitOK {
			t.Fatalf("the status is %s, %v", site.GitStatus, *site.GitMessage)
		}
		t.Logf("the fetch has allocated %d MB", allocated>>20)
		if allocated > 12*files*size {
			t.Errorf("the fetch of %d MB has allocated %d MB", files*size>>20, allocated>>20)
		}
	})

	const large = 256 << 20
	small := zeros(plumbing.BlobObject, copied)
	after := func(o object, distance int) object {
		o.before = distance
		return o
	}
	var manyFiles []object
	manyDeltas, chain := []object{small}, []object{small}
	for i := range 100 {
		file := whole(plumbing.BlobObject, fmt.Sprintf("%03d", i))
		file.zeros, file.declared = 1<<20, file.declared+1<<20
		manyFiles = append(manyFiles, file)
		content := delta(copied, 16*copied+3, strings.Repeat(copyBase, 16)+"\x03"+file.text)
		manyDeltas = append(manyDeltas, after(whole(plumbing.OFSDeltaObject, content), i+1))
	}
	for base, i := uint64(copied), uint64(1); i <= 4; i++ {
		result := 512*copied + i
		content := delta(base, result, strings.Repeat(copyBase, 512)+string([]byte{byte(i)})+"1234"[:i])
		chain, base = append(chain, after(whole(plumbing.OFSDeltaObject, content), 1)), result
	}
	byHash := whole(plumbing.REFDeltaObject, delta(copied, large, strings.Repeat(copyBase, large/copied)))
	byHash.base = hashOf(plumbing.BlobObject, strings.Repeat("\x00", copied))
	var directories []object
	for i := range 4 {
		directory := zeros(plumbing.TreeObject, maxTrees/4)
		directory.text, directory.declared = strconv.Itoa(i), directory.declared+1
		directories = append(directories, directory)
	}
	directory := zeros(plumbing.TreeObject, copied)
	byDeltas := []object{directory}
	for i := range maxTrees / copied / 16 {
		content := delta(copied, 16*copied+3, strings.Repeat(copyBase, 16)+fmt.Sprintf("\x03%03d", i))
		byDeltas = append(byDeltas, after(whole(plumbing.OFSDeltaObject, content), i+1))
	}
	empty := func(o object, declared int64) object {
		o.declared, o.text, o.zeros = declared, "x", 0
		return o
	}

	const (
		inflated  = "larger than 64 MB when it is inflated"
		tooLarge  = "an object that is larger than 5 MB"
		treesOver = "directories of the repository are larger than 4 MB"
	)
	for name, c := range map[string]struct {
		objects []object
		count   int // zero: as many as there are
		want    string
	}{
		"a large file":                            {[]object{zeros(plumbing.BlobObject, large)}, 0, inflated},
		"a large directory":                       {[]object{zeros(plumbing.TreeObject, large)}, 0, inflated},
		"a large commit":                          {[]object{zeros(plumbing.CommitObject, large)}, 0, inflated},
		"a large tag":                             {[]object{zeros(plumbing.TagObject, large)}, 0, inflated},
		"a file within the sum":                   {[]object{zeros(plumbing.BlobObject, 60<<20)}, 0, tooLarge},
		"a directory within the sum":              {[]object{zeros(plumbing.TreeObject, 60<<20)}, 0, tooLarge},
		"a delta within the sum":                  {[]object{zeros(plumbing.REFDeltaObject, 60<<20)}, 0, tooLarge},
		"directories that are large together":     {directories, 0, treesOver},
		"directories that are deltas":             {byDeltas, 0, treesOver},
		"deltas that read much of a file":         {append(deltasOf(520, 4<<20), zeros(plumbing.BlobObject, 4<<20)), 0, "too many deltas"},
		"a large delta":                           {[]object{zeros(plumbing.REFDeltaObject, large)}, 0, inflated},
		"many files that are large together":      {manyFiles, 0, inflated},
		"a delta with a large result":             {[]object{small, byHash}, 0, inflated},
		"a delta before its base":                 {[]object{byHash, small}, 0, inflated},
		"deltas whose results are large together": {manyDeltas, 0, inflated},
		"deltas of deltas":                        {chain, 0, inflated},
		"a file that declares a size it has not":  {[]object{empty(small, 1<<40)}, 0, inflated},
		"a delta that declares a size it has not": {[]object{small, empty(byHash, 1<<30)}, 0, inflated},
		"a file that is larger than it declares":  {[]object{{kind: plumbing.BlobObject, declared: 1, zeros: large}}, 0, "exceeds declared size"},
		"more objects than are there":             {[]object{small}, 1 << 31, "more than 20000 objects"},
		"a pack that ends before its objects do":  {[]object{small}, 2, "cannot be fetched"},
		"a pack without the commit of the branch": {[]object{small}, 0, "object not found"},
	} {
		t.Run(name, func(t *testing.T) {
			count := c.count
			if count == 0 {
				count = len(c.objects)
			}
			site, allocated := fetch(t, packServer(t, hashOf(plumbing.CommitObject, ""), packOf(t, count, c.objects...)))
			if site.GitStatus != store.GitFailed || !strings.Contains(*site.GitMessage, c.want) {
				t.Errorf("the status is %s, %s", site.GitStatus, *site.GitMessage)
			}
			if allocated > 32<<20 {
				t.Errorf("the fetch has allocated %d MB", allocated>>20)
			}
		})
	}

	page := whole(plumbing.BlobObject, "<p>one</p>")
	link := func(name string) string { return entry("100644", name, hashOf(page.kind, page.text)) }
	// Each of these directories has the one before it twice, so that together they have
	// 2 to the 40th entries.
	nested := []object{whole(plumbing.TreeObject, "")}
	for range 40 {
		below := hashOf(plumbing.TreeObject, nested[len(nested)-1].text)
		nested = append(nested, whole(plumbing.TreeObject, entry("40000", "a", below)+entry("40000", "b", below)))
	}
	for name, c := range map[string]struct {
		trees []object // that of the commit last
		want  string   // empty: index.html is there
	}{
		"directories in each other":   {nested, "more than 20000 entries"},
		"a long path":                 {[]object{whole(plumbing.TreeObject, link(strings.Repeat("x", 1001)))}, "more than 1000 bytes"},
		"a path that is not UTF-8":    {[]object{whole(plumbing.TreeObject, link("\xff.html"))}, "not UTF-8"},
		"a file that is listed twice": {[]object{whole(plumbing.TreeObject, link("index.html")+link("index.html"))}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			head, commit := commitOf(hashOf(plumbing.TreeObject, c.trees[len(c.trees)-1].text))
			site, _ := fetch(t, packServer(t, head, packOf(t, len(c.trees)+2, append(c.trees, page, commit)...)))
			if c.want != "" {
				if site.GitStatus != store.GitFailed || !strings.Contains(*site.GitMessage, c.want) {
					t.Errorf("the status is %s, %v", site.GitStatus, site.GitMessage)
				}
				return
			}
			if file, err := svc.SiteFile(t.Context(), at.Tenant, "index.html"); err != nil || string(file.Content) != page.text {
				t.Errorf("the status is %s, the file %q, %v", site.GitStatus, file.Content, err)
			}
		})
	}

	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"a long error with bytes that are no text": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.CopyN(w, zero{}, 32<<20)
		}, "repository not found: \uFFFD"},
		"a long list of branches": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, line("# service=git-upload-pack\n")+"0000")
			_, _ = io.WriteString(w, line(fmt.Sprintf("%040x refs/heads/master\x00shallow\n", 1)))
			for i := range 300_000 {
				_, _ = io.WriteString(w, line(fmt.Sprintf("%040x refs/heads/%06d\n", i+1, i)))
			}
		}, "the list of the branches is larger than 16 MB"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(c.answer)
			t.Cleanup(server.Close)
			site, _ := fetch(t, server.URL)
			if site.GitStatus != store.GitFailed || !strings.Contains(*site.GitMessage, c.want) || len(*site.GitMessage) > 3000 {
				t.Errorf("the status is %s, %v", site.GitStatus, site.GitMessage)
			}
		})
	}
}
