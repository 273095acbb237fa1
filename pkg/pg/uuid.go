package pg

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/doorward/doorward/pkg/id"
)

// RegisterID registers the codec of id.ID for columns of the type uuid in a connection. It needs no
// round trip.
func RegisterID(_ context.Context, conn *pgx.Conn) error {
	conn.TypeMap().RegisterType(&pgtype.Type{Name: "uuid", OID: pgtype.UUIDOID, Codec: idCodec{}})
	return nil
}

// idCodec is the codec of uuid, for id.ID too: the zero ID is NULL.
type idCodec struct{ pgtype.UUIDCodec }

func (c idCodec) PlanEncode(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	if _, ok := value.(id.ID); !ok {
		return c.UUIDCodec.PlanEncode(m, oid, format, value)
	}
	if format == pgtype.BinaryFormatCode {
		return encodeID{}
	}
	return nil
}

func (c idCodec) PlanScan(m *pgtype.Map, oid uint32, format int16, target any) pgtype.ScanPlan {
	if _, ok := target.(*id.ID); !ok {
		return c.UUIDCodec.PlanScan(m, oid, format, target)
	}
	if format == pgtype.BinaryFormatCode {
		return scanID{}
	}
	return nil
}

type encodeID struct{}

func (encodeID) Encode(value any, buf []byte) ([]byte, error) {
	v, ok := value.(id.ID)
	if !ok || v.IsZero() {
		return nil, nil
	}
	return append(buf, v[:]...), nil
}

type scanID struct{}

func (scanID) Scan(src []byte, target any) error {
	v, ok := target.(*id.ID)
	switch {
	case ok && src == nil:
		*v = id.ID{}
	case ok && len(src) == len(v):
		copy(v[:], src)
	default:
		return fmt.Errorf("a uuid of %d bytes does not fit %T", len(src), target)
	}
	return nil
}
