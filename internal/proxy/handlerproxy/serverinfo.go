package handlerproxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/numaproj/numaflow-go/pkg/info"
)

// errNotComplete means that a server-info file is still being written.
var errNotComplete = errors.New("is not complete")

// readInfo returns the handler's server-info file unchanged. It returns only a complete one.
func readInfo(path string) (raw []byte, about info.ServerInfo, err error) {
	raw, err = os.ReadFile(path)
	if err != nil {
		return nil, about, err
	}
	text, complete := bytes.CutSuffix(raw, []byte(info.END))
	if !complete {
		return nil, about, errNotComplete
	}
	if err := json.Unmarshal(text, &about); err != nil {
		return nil, about, fmt.Errorf("is no server info: %w", err)
	}
	return raw, about, nil
}

// oldestMajor and oldestMinor are the first version of Numaflow with the proxy's protocol: streams with a handshake.
const oldestMajor, oldestMinor = 1, 4

// checkInfo checks whether the proxy supports the handler that wrote a server-info file.
func (c Config) checkInfo(about *info.ServerInfo) error {
	wrong := func(field, value, allowed string) error {
		return fmt.Errorf("handlerproxy: %s in %s is %.60q, allowed: %s", field, c.HandlerServerInfo, value, allowed)
	}
	if about.Protocol != info.UDS {
		return wrong("protocol", string(about.Protocol), "uds; a handler of several processes listens on TCP, which the proxy does not")
	}
	// Some SDKs omit it for some kinds; then the handshake decides.
	if least := about.MinimumNumaflowVersion; least != "" && !recent(least) {
		return wrong("minimum_numaflow_version", about.MinimumNumaflowVersion,
			fmt.Sprintf("%d.%d or later; the handler's SDK (%s %.30s) speaks an older protocol and needs an update",
				oldestMajor, oldestMinor, about.Language, about.Version))
	}
	mode := layouts[c.Kind].mode
	if has := about.Metadata[info.MapModeKey]; mode != "" && has != mode {
		return wrong(info.MapModeKey, has, fmt.Sprintf("%s, for the proxy's kind is %s", mode, c.Kind))
	}
	return nil
}

// recent reports whether a version such as 1.4.0-z is recent enough.
func recent(version string) bool {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	if len(parts) < 2 {
		return false
	}
	major, err := strconv.Atoi(parts[0])
	if err != nil {
		return false
	}
	minor, err := strconv.Atoi(parts[1])
	if err != nil {
		return false
	}
	return major > oldestMajor || major == oldestMajor && minor >= oldestMinor
}

// markKey is the key in the metadata of a server info by which a proxy knows its own; the value is its socket. Numaflow's core takes any
// keys, and reads only those that it knows.
const markKey = "NUMATHROTTLE_PROXY"

// marked returns a handler's server info with the mark of the proxy on a socket. Unknown fields stay.
func marked(raw []byte, socket string) ([]byte, error) {
	var fields map[string]any
	decoder := json.NewDecoder(bytes.NewReader(raw)) // it stops before the end mark
	decoder.UseNumber()
	if err := decoder.Decode(&fields); err != nil {
		return nil, err
	}
	metadata, ok := fields["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		fields["metadata"] = metadata
	}
	metadata[markKey] = socket
	text, err := json.Marshal(fields)
	return append(text, info.END...), err
}

// writeInfo writes a server-info file atomically, so that the platform never reads a part of one.
func writeInfo(path string, raw []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(raw)
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
