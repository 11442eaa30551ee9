package mapper_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	batchmapsdk "github.com/numaproj/numaflow-go/pkg/batchmapper"

	"github.com/numaproj-contrib/numathrottle/pkg/mapper"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

func TestBatchARefusalPanicsWithTheLimitersErrorAndEndsTheHandlersContext(t *testing.T) {
	for name, refusal := range map[string]error{
		"limit": throttled(), // without a MaxWait nobody chose what to do
		"other": errors.New("other"),
	} {
		t.Run(name, func(t *testing.T) {
			l := throttletest.New(throttletest.Grant(), throttletest.Deny(refusal))
			var cause error
			o := <-callBatch(t.Context(), t, mapper.WrapBatch(batchmapsdk.BatchMapperFunc(
				func(ctx context.Context, in <-chan batchmapsdk.Datum) batchmapsdk.BatchResponses {
					out := respond(nil, (<-in).Id())
					_, open := <-in
					require.False(t, open)
					cause = context.Cause(ctx)
					return out
				}), l), "a b c")
			require.Equal(t, batchOutcome{panicked: refusal}, o)
			require.Equal(t, refusal, cause, "known when the channel is closed")
		})
	}
}

// numaflow-go closes the channel when the context ends, too: then it need not be the end of the batch, and what the
// handler makes of the messages that came is no answer.
func TestBatchAChannelClosedByTheEndOfTheContextEndsNoBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		in, exited := make(chan batchmapsdk.Datum), make(chan struct{})
		returned := false
		go func() {
			defer close(exited)
			mapper.WrapBatch(&batchHandler{}, throttletest.New()).BatchMap(ctx, in)
			returned = true
		}()
		in <- batchmapsdk.NewHandlerDatum([]byte("a"), time.Time{}, time.Time{}, nil, "a", nil)
		synctest.Wait()
		cancel()
		close(in)
		<-exited
		require.False(t, returned)
	})
}
