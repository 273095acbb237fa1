package harness

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/smtp"
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/doorward/doorward/deploy/e2e"
)

// The client's way of reading mails is tried on the mailbox alone, behind a
// TLS server that stands for the gateway.
func TestTheClientReadsWhatTheMailboxGot(t *testing.T) {
	config := Config{Dir: TestFolder(t)}
	var err error
	if config.Bin, err = Build(t.Context(), config.Dir, "./deploy/mailbox/cmd/mailbox"); err != nil {
		t.Fatal(err)
	}
	mail := FreeAddress()
	page := FreeAddress()
	mailbox, err := startMailbox(t.Context(), config, mail, page)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopWell(t, mailbox) })
	client := behindTLS(t, config, "http://"+page)

	const message = "From: Doorward <no-reply@example.test>\r\nTo: Jo <jo@example.test>\r\nSubject: Prove it\r\n\r\n" +
		"Follow https://app.example.test/verify?sptoken=abc%2Edef to go on.\r\n"
	if err := smtp.SendMail(mail, nil, "no-reply@example.test", []string{"jo@example.test"}, []byte(message)); err != nil {
		t.Fatal(err)
	}
	got := client.AwaitMail(t, "JO@example.test")
	if got.Kind != "email" || got.Subject != "Prove it" || got.ReceivedAt == "" {
		t.Errorf("the mail is %+v", got)
	}
	if token, err := got.Sptoken(); err != nil || token != "abc.def" {
		t.Errorf("the token of the mail is %q, %v", token, err)
	}
	count, err := client.MailCount(t.Context(), time.Minute, []string{"Jo@Example.test"})
	if err != nil || count["Jo@Example.test"] != 1 {
		t.Errorf("the mailbox counted %v, %v", count, err)
	}
	if err := mailbox.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := mailbox.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	client.AwaitMail(t, "jo@example.test")
	empty := e2e.Delete(client.Key.HostURL() + "/_mailbox")
	empty.Anonymous = true
	if answer := client.Call(t, empty); answer.Status != http.StatusNoContent {
		t.Fatal(answer)
	}
	left, err := client.Mailbox(t.Context(), nil)
	if err != nil || len(left) != 0 {
		t.Errorf("after emptying %d messages are left, %v", len(left), err)
	}
}

// behindTLS puts a TLS server before an address and returns a client that
// trusts it as it would trust a deployment: by a key file and a CA file.
func behindTLS(t *testing.T, config Config, address string) *e2e.Client {
	t.Helper()
	target, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewTLSServer(httputil.NewSingleHostReverseProxy(target))
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(config.path("ca.pem"), ca, 0o644); err != nil {
		t.Fatal(err)
	}
	key := e2e.Key{ID: "ID", Secret: "secret", BaseURL: server.URL + "/v1", CAFile: config.path("ca.pem")}
	if err := key.Write(config.path("apikey.json")); err != nil {
		t.Fatal(err)
	}
	read, err := e2e.ReadKey(config.path("apikey.json"))
	if err != nil || read != key {
		t.Fatalf("the key file is read as %v, %v", read, err)
	}
	client, err := e2e.NewClient(read)
	if err != nil {
		t.Fatal(err)
	}
	return client
}
