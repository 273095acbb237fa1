package rpc

import (
	"sync"

	"github.com/valyala/fasthttp"
)

// LocalUpstream reaches a service of the same process: its handler is called
// where a request would go over the network.
func LocalUpstream(name string, handler fasthttp.RequestHandler) *Upstream {
	r := newReplica(name, false)
	r.client.Transport = &localTransport{handler: handler}
	return &Upstream{Name: name, replicas: []*replica{r}}
}

// largeBody is the size from which the body of an answer is passed on instead of
// copied.
const largeBody = 64 << 10

// localTransport passes requests to a handler. Handler and caller share no memory, but for
// the body of the request, which the handler only reads, and a large body of the
// answer, which the handler abandons.
type localTransport struct {
	handler fasthttp.RequestHandler
	pool    sync.Pool // of *fasthttp.RequestCtx
}

// empty prepares a RequestCtx whose request is filled in afterwards.
var empty fasthttp.Request

// RoundTrip ends when the handler does: a service bounds its own time.
func (n *localTransport) RoundTrip(_ *fasthttp.HostClient, request *fasthttp.Request, response *fasthttp.Response) (retry bool, err error) {
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
		response.SetBodyRaw(body) // and c, which owns it, is not used again
		return false, nil
	}
	response.SetBody(c.Response.Body())
	c.ResetUserValues()
	c.Request.Reset()
	c.Response.Reset()
	n.pool.Put(c)
	return false, nil
}
