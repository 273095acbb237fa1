package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/idsiteapi"
	"github.com/doorward/doorward/pkg/api/mfaapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/api/sizeapi"
	"github.com/doorward/doorward/pkg/api/usageapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/customdata"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/pkg/rpc"
)

func TestTheContractOfDirectory(t *testing.T) {
	nearIsFar(t, "directory", directoryapi.Client, directoryapi.Serve)
}

func TestTheContractOfApplication(t *testing.T) {
	nearIsFar(t, "application", applicationapi.Client, applicationapi.Serve)
}

func TestTheContractOfOAuth(t *testing.T) { nearIsFar(t, "oauth", oauthapi.Client, oauthapi.Serve) }
func TestTheContractOfMFA(t *testing.T)   { nearIsFar(t, "mfa", mfaapi.Client, mfaapi.Serve) }

func TestTheContractOfUsage(t *testing.T) { nearIsFar(t, "usage", usageapi.Client, usageapi.Serve) }

func TestTheContractOfSizes(t *testing.T) { nearIsFar(t, "size", sizeapi.Client, sizeapi.Serve) }

func TestTheContractOfIDSite(t *testing.T) {
	nearIsFar(t, "idsite", idsiteapi.Client, idsiteapi.Serve)
}

// rounds is how many random requests and answers a method is tried with.
const rounds = 30

// nearIsFar tests that a service does the same in the process of its caller and in another one: every
// method of its contract gets the request that was sent, and the caller gets what it returned, whatever the
// values, and whatever error of the catalogue. Each method calls the server of the contract, and that the
// client of the same contract, whose other end is a recorder.
func nearIsFar[Contract any](t *testing.T, name string, client func(rpc.Peer) Contract, serve func(rpc.Router, Contract)) {
	before := slog.Default() // the errors are logged
	slog.SetDefault(slog.New(slog.NewTextHandler(io.Discard, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	signer := caller.NewSigner("a secret of the tests, 32 characters", time.Now)
	end := &recorder{}
	app := rest.New(rest.Config{Service: name, Signer: signer})
	serve(rest.Contract(app), client(rpc.Peer{Upstream: rpc.LocalUpstream(name, end.answer), Signer: signer}))
	served := ""
	remote := reflect.ValueOf(client(rpc.Peer{Signer: signer, Upstream: rpc.LocalUpstream(name, func(c *fasthttp.RequestCtx) {
		served = string(c.Path())
		app.Handler()(c)
	})}))
	paths := map[string]string{} // the method of each path
	contract := reflect.TypeFor[Contract]()
	for i := range contract.NumMethod() {
		method := contract.Method(i)
		call := func(in reflect.Value) (out reflect.Value, err error) {
			results := remote.MethodByName(method.Name).Call([]reflect.Value{reflect.ValueOf(t.Context()), in})
			err, _ = results[1].Interface().(error)
			return results[0], err
		}
		t.Run(method.Name, func(t *testing.T) {
			g := generator{t, rand.New(rand.NewPCG(1, uint64(i)))}
			in := g.value(method.Type.In(1))
			var out reflect.Value
			for range rounds {
				in, out = g.value(method.Type.In(1)), g.value(method.Type.Out(0))
				end.in, end.out, end.err = reflect.New(in.Type()), out, nil
				got, err := call(in)
				if err != nil {
					t.Fatalf("the method returned %v for %+v", err, in)
				}
				wantSame(t, "the request", end.in.Elem(), in)
				wantSame(t, "the answer", got, out)
			}
			if end.path != served || !strings.HasPrefix(served, rpc.Prefix+name+".") {
				t.Errorf("the client calls %s, and the server calls the method of %s", served, end.path)
			}
			if other, taken := paths[served]; taken {
				t.Errorf("%s is the path of %s too", served, other)
			}
			paths[served] = method.Name
			for _, listed := range apierr.All() {
				for _, refusal := range []*apierr.Error{listed, g.refusal(listed)} {
					end.err = refusal
					_, err := call(in)
					wantSame(t, "the error", reflect.ValueOf(err), reflect.ValueOf(refusal))
				}
			}
		})
	}
}

// recorder is the far end of a client: it keeps the request and sends an answer or an error.
type recorder struct {
	path string
	in   reflect.Value // pointer to a request of the method
	out  reflect.Value
	err  *apierr.Error
}

func (r *recorder) answer(c *fasthttp.RequestCtx) {
	r.path = string(c.Path())
	body := r.out.Interface()
	if r.err != nil {
		body = r.err
		c.SetStatusCode(r.err.Status)
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(body)
	if failed := json.Unmarshal(c.Request.Body(), r.in.Interface()); failed != nil {
		err = failed
	}
	if err != nil {
		c.Error(err.Error(), fasthttp.StatusTeapot)
		return
	}
	c.SetBody(text.Bytes())
}

func wantSame(t *testing.T, what string, got, want reflect.Value) {
	t.Helper()
	if !reflect.DeepEqual(got.Interface(), want.Interface()) {
		t.Fatalf("%s arrives as\n%#v, not as\n%#v", what, got, want)
	}
}

// generator makes random values of the types of a contract. A slice or a map of a contract has items, or is
// nil: no contract promises that an empty one arrives as an empty one.
type generator struct {
	t *testing.T
	*rand.Rand
}

// texts are such that a transport may change. None has a NUL, which no body may have (pkg/field).
var texts = []string{"", "jo@example.test", "Zoë ✓ 😀", "a\x01b\r\n\t", `"quoted" \ 'text'`, "<a href=\"x\">&amp;</a>", "\u2028null"}

func (g generator) text() string { return texts[g.IntN(len(texts))] + fmt.Sprint(g.IntN(10)) }

// refusal returns an error with all that an error may have.
func (g generator) refusal(of *apierr.Error) *apierr.Error {
	e := of.Because("%s", g.text()).Saying("%s", g.text()).With("error", g.text()).WithLocation(g.text())
	e.RetryAfter, e.Allow = time.Duration(1+g.Int64N(1e12)), g.text()
	return e
}

func (g generator) value(of reflect.Type) reflect.Value {
	v := reflect.New(of).Elem()
	g.fill(v, 4)
	return v
}

// fill sets a value; depth bounds the pointers, slices and maps inside each other.
func (g generator) fill(v reflect.Value, depth int) {
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.Unix(g.Int64N(1<<32), g.Int64N(1e9)).UTC()))
		return
	case json.RawMessage:
		v.Set(reflect.ValueOf(json.RawMessage(fmt.Sprintf(`{"number":%d.50,"nested":[null,"<&>"]}`, g.IntN(100)))))
		return
	case customdata.Document:
		v.Set(reflect.ValueOf(customdata.Document(fmt.Sprintf(`{"plan":"gold","level":%d}`, g.IntN(100)))))
		return
	case *apierr.Error:
		if all := apierr.All(); g.IntN(2) == 0 {
			v.Set(reflect.ValueOf(g.refusal(all[g.IntN(len(all))])))
		}
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(g.IntN(2) == 0)
	case reflect.Int, reflect.Int64:
		v.SetInt(g.Int64() >> g.IntN(64))
	case reflect.Uint8:
		v.SetUint(uint64(g.IntN(256)))
	case reflect.Uint64:
		v.SetUint(g.Uint64())
	case reflect.String:
		v.SetString(g.text())
	case reflect.Array:
		for i := range v.Len() {
			g.fill(v.Index(i), depth)
		}
	case reflect.Pointer:
		if depth > 0 && g.IntN(3) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			g.fill(v.Elem(), depth-1)
		}
	case reflect.Slice:
		for range min(depth, g.IntN(4)) {
			item := reflect.New(v.Type().Elem()).Elem()
			g.fill(item, depth-1)
			v.Set(reflect.Append(v, item))
		}
	case reflect.Map:
		for range min(depth, g.IntN(4)) {
			key, item := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			g.fill(key, depth-1)
			g.fill(item, depth-1)
			if v.IsNil() {
				v.Set(reflect.MakeMap(v.Type()))
			}
			v.SetMapIndex(key, item)
		}
	case reflect.Struct:
		g.fillStruct(v, depth)
	default:
		g.t.Fatalf("the generator makes no %s", v.Type())
	}
}

func (g generator) fillStruct(v reflect.Value, depth int) {
	if strings.HasPrefix(v.Type().Name(), "Nullable[") { // absent, null or a value
		switch g.IntN(3) {
		case 1:
			v.FieldByName("Present").SetBool(true)
			v.FieldByName("Null").SetBool(true)
		case 2:
			v.FieldByName("Present").SetBool(true)
			g.fill(v.FieldByName("Value"), depth)
		}
		return
	}
	for i := range v.NumField() {
		if !v.Type().Field(i).IsExported() {
			g.t.Fatalf("%s.%s is not exported: it does not leave the process", v.Type(), v.Type().Field(i).Name)
		}
		g.fill(v.Field(i), depth)
	}
}
