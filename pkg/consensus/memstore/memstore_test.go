package memstore_test

import (
	"testing"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/storetest"
)

func TestConformance(t *testing.T) {
	store := memstore.New()
	storetest.Run(t, storetest.Harness{
		New:     func(testing.TB) consensus.Store { return store },
		Memory:  true,
		Longest: 400 * time.Millisecond,
	})
}
