package rpc

import (
	"sync"

	"github.com/valyala/fasthttp"
)

// LocalUpstream is the upstream of a service in the same process (standalone): it calls the handler
// in place of sending a request over the network.
func LocalUpstream(name string, handler fasthttp.RequestHandler) *Upstream {
	r := newReplica(name, &service{host: name})
	r.client.Transport = &localTransport{handler: handler}
	u := &Upstream{Name: name}
	u.replicas.Store(&[]*replica{r})
	return u
}

// largeBody is the size from which the body of an answer is not copied.
const largeBody = 64 << 10

// localTransport passes requests to a handler. Handler and caller share no memory, except for the
// body of the request, which the handler only reads, and a large body of the answer, whose
// RequestCtx is not used again.
type localTransport struct {
	handler fasthttp.RequestHandler
	pool    sync.Pool // of *fasthttp.RequestCtx
}

// empty initializes a RequestCtx whose request is set afterwards.
var empty fasthttp.Request

// RoundTrip calls the handler. It ignores the deadline: a service has its own request timeout.
func (n *localTransport) RoundTrip(_ *fasthttp.HostClient, request *fasthttp.Request,
	response *fasthttp.Response) (retry bool, err error) {
	c, ok := n.pool.Get().(*fasthttp.RequestCtx)
	if !ok {
		c = new(fasthttp.RequestCtx)
	}
	c.Init(&empty, nil, nil)
	request.Header.CopyTo(&c.Request.Header)
	if body := request.Body(); len(body) > 0 {
		c.Request.Header.SetContentLength(len(body))
		c.Request.SetBodyRaw(body)
	}
	n.handler(c)
	c.Response.Header.CopyTo(&response.Header)
	if body := c.Response.Body(); len(body) > largeBody {
		response.SetBodyRaw(body) // c owns body, and is not put back into the pool
		return false, nil
	}
	response.SetBody(c.Response.Body())
	c.ResetUserValues()
	c.Request.Reset()
	c.Response.Reset()
	n.pool.Put(c)
	return false, nil
}
