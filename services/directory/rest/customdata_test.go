package rest_test

import (
	"strings"
	"testing"
	"time"
)

func TestCustomDataOfEveryOwner(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	estate := b.estate()
	for _, kind := range []string{"tenants", "directories", "groups", "accounts"} {
		data, name := estate[kind]+"/customData", "custom_data_"+kind
		b.Get(data).Want(200).Golden(name + "_empty")
		b.clock.Move(time.Minute)
		b.Post(
			data, `{"plan":"gold","limits":{"seats":12},"exact":12345678901234567890.123,"nothing":null,"tags":["a",true]}`).Want(200).Golden(name)
		b.Post(data, `{"limits":{"rooms":3},"plan":"silver"}`).Want(200).Golden(name + "_merged")
		b.Post(data, string(b.Get(data).Want(200).Body)).Want(200).Golden(name + "_merged")
		b.Delete(data + "/plan").Want(204)
		b.Delete(data + "/plan").Want(204)
		b.Get(data).Want(200).Golden(name + "_without_plan")
		b.Delete(data).Want(204)
		if left := len(b.Get(data).Want(200).Object()); left != 3 {
			t.Errorf("cleared customData of %s has %d members", kind, left)
		}
		b.Get(data+"/plan").WantError(405, 1100)
		b.Post(data+"/plan", `{}`).WantError(405, 1100)
		b.Post(strings.TrimSuffix(data, "/customData"), `{"customData":{"href":"`+data+`"}}`).Want(200)
	}
}
