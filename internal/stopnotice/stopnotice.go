// Package stopnotice notifies the containers of a pod that the pod is being stopped, by a file in a folder that they share.
//
// Kubernetes 1.29 and later stops the container of a handler only when Numaflow's own has ended. Numaflow's waits for the handler, which
// receives no signal. A container of spec.sidecars gets SIGTERM together with Numaflow's own: it posts the notice, and the handler sees it
// at its next check.
//
// A notice is valid until it is cleared. The posting container clears it at its start. So if only that container was stopped, its restart
// ends the notice.
package stopnotice

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// file is the name of the notice in the shared folder.
const file = "numathrottle-stop"

// Every is how often Seen checks. A check is one stat(2).
const Every = 200 * time.Millisecond

// Path returns the path of the notice in a folder.
func Path(folder string) string { return filepath.Join(folder, file) }

// Post creates the notice in a folder. Errors: the folder is missing or not writable.
func Post(folder string) error {
	f, err := os.OpenFile(Path(folder), os.O_CREATE|os.O_WRONLY, 0o644) //nolint:gosec // other containers run as other users
	if err != nil {
		return fmt.Errorf("the stop notice cannot be posted: %w", err)
	}
	return f.Close()
}

// Clear removes the notice, if there is one. Errors: the folder is missing or not writable.
func Clear(folder string) error {
	if _, err := os.Stat(folder); err != nil {
		return fmt.Errorf("the folder of the stop notice: %w", err)
	}
	if err := os.Remove(Path(folder)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("an old stop notice cannot be cleared: %w", err)
	}
	return nil
}

// Seen blocks until there is a notice in the folder, and returns true; or until ctx has ended, and returns false. A missing or unreadable
// folder has no notice.
func Seen(ctx context.Context, folder string) bool {
	tick := time.NewTicker(Every)
	defer tick.Stop()
	for {
		if _, err := os.Stat(Path(folder)); err == nil {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
}
