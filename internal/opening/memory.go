package opening

import (
	"sync"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
)

// memory holds the stores memory://NAME of this process. They stay, because a store opened again must have the claims that are still to be
// waited for.
var memory = struct {
	mu     sync.Mutex
	stores map[string]*memstore.Store
}{stores: map[string]*memstore.Store{}}

// openMemory returns the only store with this name.
func openMemory(name string) *memstore.Store {
	memory.mu.Lock()
	defer memory.mu.Unlock()
	store := memory.stores[name]
	if store == nil {
		store = memstore.New()
		memory.stores[name] = store
	}
	return store
}
