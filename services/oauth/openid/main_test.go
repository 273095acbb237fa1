package openid_test

import (
	"testing"

	"github.com/doorward/doorward/pkg/pg/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }
