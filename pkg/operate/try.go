package operate

import (
	"context"
	"crypto/rand"
	"encoding/binary"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// scratch is the pool that Try joins. Pools leaves it out.
const scratch = "numathrottle check"

// Try does at a store what a pod does: it joins a pool that nobody else uses, and leaves it again. Other commands only read, which a
// replica, a full server or a user without all permissions allows. It returns the error of the store.
func Try(ctx context.Context, s consensus.Store) error {
	var nonce [8]byte
	_, _ = rand.Read(nonce[:]) // never fails
	req := driver.Request{
		Pool: scratch, ID: "check-" + rand.Text(), Incarnation: rand.Text(), Seq: 1, Nonce: binary.LittleEndian.Uint64(nonce[:]),
		Lease: driver.DefaultLease,
	}
	if _, err := s.Sync(ctx, req); err != nil {
		return err
	}
	return s.Leave(ctx, driver.Leave{
		Pool: req.Pool, ID: req.ID, Incarnation: req.Incarnation, Seq: 2, Unanswered: []driver.Ticket{{Seq: req.Seq, Nonce: req.Nonce}},
	})
}
