package admission

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestABoundedContextEndsOnlyOnceSomebodyAsks(t *testing.T) {
	parent, cancel := context.WithCancelCause(t.Context())
	b := &bounded{Context: parent, deadline: time.Now().Add(-time.Second)}
	deadline, ok := b.Deadline()
	require.True(t, ok)
	require.Equal(t, b.deadline, deadline)
	require.NoError(t, b.Err())
	require.Nil(t, b.timed, "no timer")
	<-b.Done()
	require.Equal(t, context.DeadlineExceeded, b.Err())
	require.Equal(t, context.DeadlineExceeded, context.Cause(b))
	b.stop()

	b = &bounded{Context: parent, deadline: time.Now().Add(time.Hour)}
	cause := errors.New("cause")
	cancel(cause)
	require.Equal(t, context.Canceled, b.Err(), "the parent's end counts at once")
	<-b.Done()
	require.Equal(t, cause, context.Cause(b))
	b.stop()
}
