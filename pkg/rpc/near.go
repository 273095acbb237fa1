package rpc

import (
	"sync"

	"github.com/valyala/fasthttp"
)

// NearUpstream reaches a service of the same process: its handler is called
// where a request would go over the network.
func NearUpstream(name string, handler fasthttp.RequestHandler) *Upstream {
	r := newReplica(name)
	r.client.Transport = &near{handler: handler}
	return &Upstream{Name: name, replicas: []*replica{r}}
}

// near hands requests to a handler. Both sides keep what is theirs: the handler
// gets a copy of the request, the caller one of the answer.
type near struct {
	handler fasthttp.RequestHandler
	pool    sync.Pool // of *fasthttp.RequestCtx
}

// RoundTrip ends when the handler does: a service bounds its own time.
func (n *near) RoundTrip(_ *fasthttp.HostClient, request *fasthttp.Request, response *fasthttp.Response) (retry bool, err error) {
	c, ok := n.pool.Get().(*fasthttp.RequestCtx)
	if !ok {
		c = new(fasthttp.RequestCtx)
	}
	c.Init(request, nil, nil)
	if length := len(c.Request.Body()); length > 0 {
		c.Request.Header.SetContentLength(length)
	}
	n.handler(c)
	c.Response.Header.CopyTo(&response.Header)
	response.SetBody(c.Response.Body())
	c.ResetUserValues()
	c.Request.Reset()
	c.Response.Reset()
	n.pool.Put(c)
	return false, nil
}
