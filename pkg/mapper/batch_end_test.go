package mapper_test

import (
	"context"
	"errors"
	"testing"

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
