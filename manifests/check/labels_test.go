package check

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// labelFaults: everything has the labels by which tools find what belongs together. What kustomize has made of a file is found by the
// labels, too.
func labelFaults(_ *testing.T, b bundle) []string {
	if b.example {
		return nil
	}
	var found []string
	for _, d := range b.docs {
		has := d.node.GetLabels()
		if has["app.kubernetes.io/part-of"] != "numathrottle" {
			found = append(found, d.String()+": it is not labelled as a part of numathrottle")
		}
		if has["app.kubernetes.io/name"] == "" {
			found = append(found, d.String()+": it has no label app.kubernetes.io/name")
		}
	}
	return found
}

// bufferFaults: nothing but the overlay made for that, or a chart that was told to, brings a buffer service. Deleting
// it deletes the buffers of all pipelines of the namespace. Its version is fixed.
func bufferFaults(t *testing.T, b bundle) []string {
	t.Helper()
	var found []string
	for _, d := range b.of("InterStepBufferService") {
		if b.name != "buffer" && b.name != "chart-buffer" {
			found = append(found, d.String()+": the namespace has one, which this would delete")
		}
		version := ""
		if d.decode(t, &version, "spec", "jetstream", "version"); version == "" || version == "latest" {
			found = append(found, d.String()+": its version is not fixed")
		}
	}
	return found
}

// The buffer is there for those who have none.
func TestBufferOverlay(t *testing.T) {
	for _, b := range []bundle{render(t, manifests+"/overlays/buffer"), chart(t, "buffer")} {
		require.Len(t, b.of("InterStepBufferService"), 1)
		require.Equal(t, "default", b.of("InterStepBufferService")[0].name)
		require.Empty(t, bufferFaults(t, b))
		b.name = "first-pipeline"
		require.Equal(t, []string{"InterStepBufferService default: the namespace has one, which this would delete"}, bufferFaults(t, b))
	}
}
