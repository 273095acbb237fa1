// Package ldaptest is an LDAP server for tests (fake), of any size and with any errors: its
// entries are generated while they are read. It understands simple binds, searches with paged
// results, and the filters that the agent sends.
package ldaptest

import (
	"context"
	"errors"
	"iter"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	ber "github.com/go-asn1-ber/asn1-ber"
	"github.com/go-ldap/ldap/v3"
)

// Entry is a result of a search: an entry or, with Referral, the URL of another server.
type Entry struct {
	DN         string
	Attributes map[string][]string
	Referral   string
}

// Server is the LDAP server. Its fields are set before Start.
type Server struct {
	// Entries generates the whole directory, for every search again.
	Entries func() iter.Seq[Entry]
	// Bind returns the result code of a bind, and its diagnostic message. With nil, every bind
	// succeeds.
	Bind func(dn, password string) (code uint16, message string)
	// Searched is called at the start of every page of a search; where it returns false, the
	// connection is closed. Nil keeps all connections open.
	Searched func() bool

	Searches atomic.Int64 // number of searches; further pages of a search do not count
	Binds    atomic.Int64

	listener net.Listener
	serving  sync.WaitGroup
	open     context.Context // until stop ends all connections
	stop     context.CancelFunc
}

// Start serves until the test ends.
func (s *Server) Start(t testing.TB) {
	t.Helper()
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
}

// Listen serves until Stop.
func (s *Server) Listen() (err error) {
	if s.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return err
	}
	s.open, s.stop = context.WithCancel(context.Background())
	s.serving.Go(func() {
		for {
			conn, err := s.listener.Accept()
			if err != nil {
				return
			}
			s.serving.Go(func() { s.serve(conn) })
		}
	})
	return nil
}

// Stop closes the listener and all connections.
func (s *Server) Stop() {
	_ = s.listener.Close()
	s.stop()
	s.serving.Wait()
}

// Port is where the server listens on 127.0.0.1.
func (s *Server) Port() int { return s.listener.Addr().(*net.TCPAddr).Port }

// Address is host and port.
func (s *Server) Address() string { return "127.0.0.1:" + strconv.Itoa(s.Port()) }

// connection is one client. It has one paged search at a time, as an agent does.
type connection struct {
	net.Conn
	next func() (Entry, bool)
	stop func()
}

func (c *connection) endSearch() {
	if c.stop != nil {
		c.stop()
	}
	c.next, c.stop = nil, nil
}

func (s *Server) serve(conn net.Conn) {
	c := &connection{Conn: conn}
	defer c.endSearch()
	defer conn.Close()
	defer context.AfterFunc(s.open, func() { _ = conn.Close() })()
	for {
		message, err := ber.ReadPacket(conn)
		if err != nil || len(message.Children) < 2 {
			return
		}
		number, request := message.Children[0].Value.(int64), message.Children[1]
		switch request.Tag {
		case ldap.ApplicationBindRequest:
			err = s.bind(c, number, request)
		case ldap.ApplicationSearchRequest:
			err = s.search(c, number, request, message)
		default:
			return
		}
		if err != nil {
			return
		}
	}
}

func (s *Server) bind(c *connection, number int64, request *ber.Packet) error {
	s.Binds.Add(1)
	code, message := uint16(ldap.LDAPResultSuccess), ""
	if s.Bind != nil {
		code, message = s.Bind(request.Children[1].Data.String(), request.Children[2].Data.String())
	}
	return c.send(number, result(ldap.ApplicationBindResponse, code, message), nil)
}

// search sends one page of the entries that match a filter. With the cookie of a page, the search
// continues after that page.
func (s *Server) search(c *connection, number int64, request, message *ber.Packet) error {
	if s.Searched != nil && !s.Searched() {
		return errors.New("the connection is to end")
	}
	base, scope, filter := strings.ToLower(request.Children[0].Data.String()), request.Children[1].Value.(int64),
		request.Children[6]
	if base == "" && scope == ldap.ScopeBaseObject { // the root of the server
		s.Searches.Add(1)
		if err := c.send(number, entryPacket(Entry{}), nil); err != nil {
			return err
		}
		return c.send(number, result(ldap.ApplicationSearchResultDone, ldap.LDAPResultSuccess, ""), nil)
	}
	paging, err := pagingOf(message)
	if err != nil {
		return err
	}
	if paging == nil || len(paging.Cookie) == 0 {
		s.Searches.Add(1)
		c.endSearch()
		c.next, c.stop = iter.Pull(s.Entries())
	}
	if c.next == nil {
		return errors.New("a cookie without a search")
	}
	for sent := 0; paging == nil || sent < int(paging.PagingSize); {
		entry, ok := c.next()
		if !ok {
			c.endSearch()
			break
		}
		if !strings.HasSuffix(strings.ToLower(entry.DN), base) ||
			(entry.Referral == "" && !matches(filter, entry.Attributes)) {
			continue
		}
		if err := c.send(number, entryPacket(entry), nil); err != nil {
			return err
		}
		sent++
	}
	var controls []ldap.Control
	if paging != nil {
		answer := &ldap.ControlPaging{}
		if c.next != nil {
			answer.Cookie = []byte("more")
		}
		controls = append(controls, answer)
	} else {
		c.endSearch()
	}
	return c.send(number, result(ldap.ApplicationSearchResultDone, ldap.LDAPResultSuccess, ""), controls)
}

func pagingOf(message *ber.Packet) (*ldap.ControlPaging, error) {
	if len(message.Children) < 3 {
		return nil, nil
	}
	for _, child := range message.Children[2].Children {
		control, err := ldap.DecodeControl(child)
		if err != nil {
			return nil, err
		}
		if paging, ok := control.(*ldap.ControlPaging); ok {
			return paging, nil
		}
	}
	return nil, nil
}

func (c *connection) send(number int64, response *ber.Packet, controls []ldap.Control) error {
	message := ber.NewSequence("")
	message.AppendChild(ber.NewInteger(ber.ClassUniversal, ber.TypePrimitive, ber.TagInteger, number, ""))
	message.AppendChild(response)
	if len(controls) > 0 {
		all := ber.Encode(ber.ClassContext, ber.TypeConstructed, 0, nil, "")
		for _, control := range controls {
			all.AppendChild(control.Encode())
		}
		message.AppendChild(all)
	}
	_, err := c.Write(message.Bytes())
	return err
}

func octets(text string) *ber.Packet {
	return ber.NewString(ber.ClassUniversal, ber.TypePrimitive, ber.TagOctetString, text, "")
}

func result(tag ber.Tag, code uint16, message string) *ber.Packet {
	p := ber.Encode(ber.ClassApplication, ber.TypeConstructed, tag, nil, "")
	p.AppendChild(ber.NewInteger(ber.ClassUniversal, ber.TypePrimitive, ber.TagEnumerated, int64(code), ""))
	p.AppendChild(octets(""))
	p.AppendChild(octets(message))
	return p
}

func entryPacket(entry Entry) *ber.Packet {
	if entry.Referral != "" {
		p := ber.Encode(ber.ClassApplication, ber.TypeConstructed, ldap.ApplicationSearchResultReference, nil, "")
		p.AppendChild(octets(entry.Referral))
		return p
	}
	p := ber.Encode(ber.ClassApplication, ber.TypeConstructed, ldap.ApplicationSearchResultEntry, nil, "")
	p.AppendChild(octets(entry.DN))
	all := ber.NewSequence("")
	for name, values := range entry.Attributes {
		attribute := ber.NewSequence("")
		attribute.AppendChild(octets(name))
		set := ber.Encode(ber.ClassUniversal, ber.TypeConstructed, ber.TagSet, nil, "")
		for _, value := range values {
			set.AppendChild(octets(value))
		}
		attribute.AppendChild(set)
		all.AppendChild(attribute)
	}
	p.AppendChild(all)
	return p
}

// matches reports whether an entry matches a filter. Names of attributes must be spelled as in the
// configuration of the agent.
func matches(filter *ber.Packet, attributes map[string][]string) bool {
	compare := func(is func(value, want string) bool) bool {
		name, want := filter.Children[0].Data.String(), filter.Children[1].Data.String()
		return slices.ContainsFunc(attributes[name], func(value string) bool {
			return is(strings.ToLower(value),
				strings.ToLower(want))
		})
	}
	switch filter.Tag {
	case ldap.FilterAnd:
		return !slices.ContainsFunc(filter.Children, func(part *ber.Packet) bool { return !matches(part, attributes) })
	case ldap.FilterOr:
		return slices.ContainsFunc(filter.Children, func(part *ber.Packet) bool { return matches(part, attributes) })
	case ldap.FilterEqualityMatch:
		return compare(func(value, want string) bool { return value == want })
	case ldap.FilterGreaterOrEqual:
		return compare(func(value, want string) bool { return value >= want })
	case ldap.FilterPresent:
		return len(attributes[filter.Data.String()]) > 0
	}
	return false
}
