package sourcer_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	transformsdk "github.com/numaproj/numaflow-go/pkg/sourcetransformer"

	"github.com/numaproj-contrib/numathrottle/pkg/sourcer"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

var transform = transformsdk.SourceTransformFunc(func(context.Context, []string, transformsdk.Datum) transformsdk.Messages { return nil })

func TestWhatIsForwardedKeepsItsMetadata(t *testing.T) {
	meta := transformsdk.NewUserMetadata()
	meta.AddKV("group", "k", []byte("v"))
	d := transformsdk.NewHandlerDatum(nil, time.Time{}, time.Time{}, nil, meta, nil)
	out := sourcer.WrapTransformer(transform, throttletest.New(throttletest.Deny(nil)), sourcer.WithMaxWait(time.Second),
		sourcer.OnDenied(sourcer.Forward("later"))).Transform(t.Context(), nil, d)
	require.Equal(t, "v", string(out[0].UserMetadata().Value("group", "k")))
}

func TestAnEmptyAnswerOfADenyFuncFailsTheStream(t *testing.T) {
	deny := sourcer.DenyFunc(func(context.Context, []string, transformsdk.Datum, *throttle.Error) transformsdk.Messages { return nil })
	w := sourcer.WrapTransformer(transform, throttletest.New(throttletest.Deny(nil)), sourcer.WithMaxWait(time.Second), sourcer.OnDenied(deny))
	require.PanicsWithError(t, "sourcer: DenyFunc returned no messages, which the platform does not take from a transformer", func() {
		w.Transform(t.Context(), nil, transformsdk.NewHandlerDatum(nil, time.Time{}, time.Time{}, nil, nil, nil))
	})
}

// A MonoVertex hands a map what was nacked or dropped, empty; the transformer cannot know whether there is a map.
func TestAMonoVertexIsWarnedOfWhatItLoses(t *testing.T) {
	denyAll := func(context.Context, []string, transformsdk.Datum, *throttle.Error) transformsdk.Messages { return nil }
	for name, c := range map[string]struct {
		mono   string
		action sourcer.Action
		warned bool
	}{
		"nack":               {"mv", sourcer.Nack(), true},
		"drop":               {"mv", sourcer.Drop(), true},
		"function":           {"mv", sourcer.DenyFunc(denyAll), true},
		"forward":            {"mv", sourcer.Forward("later"), false},
		"wait":               {"mv", sourcer.Wait(), false},
		"nack in a pipeline": {"", sourcer.Nack(), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("NUMAFLOW_MONO_VERTEX_NAME", c.mono)
			var buf bytes.Buffer
			opts := []sourcer.TransformerOption{sourcer.OnDenied(c.action), sourcer.WithLogger(slog.New(slog.NewTextHandler(&buf, nil)))}
			if name != "wait" {
				opts = append(opts, sourcer.WithMaxWait(time.Second))
			}
			sourcer.WrapTransformer(transform, throttletest.New(), opts...)
			warnings := strings.Count(buf.String(), "level=WARN")
			if !c.warned {
				require.Zero(t, warnings)
				return
			}
			require.Equal(t, 1, warnings)
			require.Contains(t, buf.String(), "3531")
			require.Contains(t, buf.String(), "use Wait")
			sourcer.WrapTransformer(transform, nil, opts...)
			require.Equal(t, 1, strings.Count(buf.String(), "level=WARN"), "without a limit nothing is denied")
		})
	}
}
