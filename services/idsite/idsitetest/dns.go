package idsitetest

import (
	"context"
	"net"
	"sync"
)

// DNS is a fake of the resolver that looks up TXT records.
type DNS struct {
	// OnLookup is called before each lookup of a name; nil: nothing is.
	OnLookup func(name string)

	mu      sync.Mutex
	records map[string][]string
	down    bool
	lookups int
}

// Publish adds a TXT record.
func (d *DNS) Publish(name, text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.records == nil {
		d.records = map[string][]string{}
	}
	d.records[name+"."] = append(d.records[name+"."], text)
}

// SetDown sets whether lookups time out.
func (d *DNS) SetDown(down bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.down = down
}

// Lookups returns how many lookups there were.
func (d *DNS) Lookups() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lookups
}

// LookupTXT returns the TXT records of an absolute name, as net.Resolver does.
func (d *DNS) LookupTXT(_ context.Context, name string) ([]string, error) {
	if d.OnLookup != nil {
		d.OnLookup(name)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lookups++
	texts, found := d.records[name]
	switch {
	case d.down:
		return nil, &net.DNSError{Err: "i/o timeout", Name: name, IsTimeout: true, IsTemporary: true}
	case !found:
		return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
	}
	return texts, nil
}
