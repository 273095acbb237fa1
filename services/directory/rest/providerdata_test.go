package rest_test

import (
	"testing"

	"github.com/doorward/doorward/pkg/id"
)

func TestProviderData(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	account := b.Post(b.directory("Staff")+"/accounts", jo).Want(201).Href()
	b.Get(account + "/providerData").Want(200).Golden("provider_data")
	b.Post(account+"/providerData", `{}`).WantError(405, 1100)
	b.Delete(account+"/providerData").WantError(405, 1100)
	b.Get("/v1/accounts/"+id.New(b.clock.Now()).String()+"/providerData").WantError(404, 404)
	b.Delete(account).Want(204)
	b.Get(account+"/providerData").WantError(404, 404)
}
