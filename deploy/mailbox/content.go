package mailbox

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"

	"github.com/emersion/go-message"
	_ "github.com/emersion/go-message/charset" // Decodes every charset that mail is written in.
	"github.com/emersion/go-message/textproto"
)

const (
	// maxDepth and maxParts end the reading of a MIME structure that is made to
	// be expensive: each level of nesting reads every byte below it once more.
	maxDepth = 10
	maxParts = 200
	// maxHeaderBytes ends the reading of a header of the message that never ends.
	maxHeaderBytes = 1 << 20
)

// errEnough ends a walk through the parts of a message.
var errEnough = errors.New("enough of the message read")

// content is what a mail says, decoded to UTF-8. What is absent, or too broken
// to be read, is empty.
type content struct {
	from       string // the header field, for a reader's eyes only
	subject    string
	text, html string
	hasText    bool
	hasHTML    bool
	visited    int
}

// readContent never fails: of a broken message it returns what can be read.
func readContent(raw []byte) content {
	limited := &io.LimitedReader{R: bytes.NewReader(raw), N: maxHeaderBytes}
	reader := bufio.NewReader(limited)
	header, err := readHeader(reader)
	endless := limited.N == 0 && reader.Buffered() == 0
	limited.N = int64(len(raw))
	c := content{from: decoded(header, "From"), subject: decoded(header, "Subject")}
	if err != nil || endless {
		return c
	}
	// An unknown charset or encoding is reported with an entity that can be read.
	entity, _ := message.New(header, reader)
	_ = entity.Walk(c.visit)
	return c
}

// visit takes the first inline part of either type.
func (c *content) visit(path []int, part *message.Entity, _ error) error {
	c.visited++
	if len(path) > maxDepth || c.visited > maxParts {
		return errEnough
	}
	if disposition, _, _ := part.Header.ContentDisposition(); strings.EqualFold(disposition, "attachment") {
		return nil
	}
	contentType, _, _ := part.Header.ContentType()
	mediaType, _, _ := strings.Cut(contentType, ";") // It comes whole when its parameters are broken.
	mediaType = strings.ToLower(strings.TrimSpace(mediaType))
	switch {
	case mediaType == "text/plain" && !c.hasText:
		c.text, c.hasText = body(part), true
	case mediaType == "text/html" && !c.hasHTML:
		c.html, c.hasHTML = body(part), true
	}
	if c.hasText && c.hasHTML {
		return errEnough
	}
	return nil
}

// body reads a part up to its end or to the first byte that cannot be decoded.
func body(part *message.Entity) string {
	b, _ := io.ReadAll(part.Body)
	return strings.ToValidUTF8(string(b), "\uFFFD")
}

// readHeader reads the header fields up to the empty line. With an error it
// returns those before the trouble.
func readHeader(reader *bufio.Reader) (message.Header, error) {
	header, err := textproto.ReadHeader(reader)
	return message.Header{Header: header}, err
}

// decoded returns a header field as a reader sees it (RFC 2047), or as it was
// written when it cannot be decoded.
func decoded(header message.Header, field string) string {
	value, _ := header.Text(field)
	return strings.ToValidUTF8(value, "\uFFFD")
}
