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
	// maxDepth and maxParts bound the cost of a hostile MIME structure: each level of
	// nesting reads every byte below it once more.
	maxDepth = 10
	maxParts = 200
	// maxHeaderBytes bounds the header of a message.
	maxHeaderBytes = 1 << 20
)

// errStopWalk ends a walk through the parts of a message.
var errStopWalk = errors.New("enough of the message read")

// content is the subject and the bodies of a mail, decoded to UTF-8. A field that is absent,
// or cannot be parsed, is empty.
type content struct {
	from       string // the header field, for a reader's eyes only
	subject    string
	text, html string
	hasText    bool
	hasHTML    bool
	parts      int // that were visited
}

// readContent parses a message. It never fails: it returns the parts that can be parsed.
func readContent(raw []byte) content {
	limited := &io.LimitedReader{R: bytes.NewReader(raw), N: maxHeaderBytes}
	reader := bufio.NewReader(limited)
	header, err := readHeader(reader)
	tooLong := limited.N == 0 && reader.Buffered() == 0
	limited.N = int64(len(raw))
	c := content{from: decodedField(header, "From"), subject: decodedField(header, "Subject")}
	if err != nil || tooLong {
		return c
	}
	// An unknown charset or encoding is reported with an entity that can be read.
	entity, _ := message.New(header, reader)
	_ = entity.Walk(c.visit)
	return c
}

// visit keeps the first inline part of the types text/plain and text/html.
func (c *content) visit(path []int, part *message.Entity, _ error) error {
	c.parts++
	if len(path) > maxDepth || c.parts > maxParts {
		return errStopWalk
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
		return errStopWalk
	}
	return nil
}

// body reads a part up to its end or to the first byte that cannot be decoded.
func body(part *message.Entity) string {
	b, _ := io.ReadAll(part.Body)
	return strings.ToValidUTF8(string(b), "\uFFFD")
}

// readHeader reads the header fields up to the empty line. With an error it
// returns the fields before the error.
func readHeader(reader *bufio.Reader) (message.Header, error) {
	header, err := textproto.ReadHeader(reader)
	return message.Header{Header: header}, err
}

// decodedField returns a header field with its encoded words decoded (RFC 2047), or as it
// was written when it cannot be decoded.
func decodedField(header message.Header, field string) string {
	value, _ := header.Text(field)
	return strings.ToValidUTF8(value, "\uFFFD")
}
