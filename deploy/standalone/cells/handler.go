package cells

import (
	"net/http"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/doorward/doorward/pkg/apierr"
)

// The headers of an answer.
const (
	CellHeader    = "X-Doorward-Cell"
	AddressHeader = "X-Doorward-Cell-Address"
)

// retryAfter is how long a client of a lost cell should wait.
const retryAfter = 5 * time.Second

// ServeHTTP answers a proxy that asks about a request (forward authentication): 200 with the cell of the request in
// CellHeader and AddressHeader, or 503 with Retry-After and the error body that the client gets.
func (d *Directory) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	in := forwarded(r)
	c, err := d.cellOf(r.Context(), in.names())
	if err == nil {
		w.Header().Set(CellHeader, c.Name)
		w.Header().Set(AddressHeader, c.Address)
		return
	}
	refusal := apierr.Unavailable.Because("the deployment of this request does not answer; repeat it later")
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Retry-After", strconv.Itoa(int(retryAfter.Seconds())))
	w.WriteHeader(refusal.Status)
	_, _ = w.Write(refusal.Body("https://"+in.host+"/errors/"+strconv.Itoa(refusal.Code), uuid.NewString()))
}
