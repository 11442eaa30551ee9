package protocol

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// A processor tells in each sync how far ahead the last of its slots lies, from when the answer
// came at the latest: never less than it is.
func TestRequestTellsHowFarSlotsLie(t *testing.T) {
	const ms = time.Millisecond
	p := NewProcessor(ProcessorConfig{Pool: "pool", ID: "a"}, "1")
	p.Configure(sharing.Terms{Spacing: 100 * ms, Strict: true})
	require.Zero(t, p.Request(0, 1, Observation{Demand: driver.Whole}).Reach)

	_, o := p.Reserve(time.Second, sharing.Order{Count: 3, Spacing: 100 * ms, Ahead: 10})
	_, err := p.Reserved(o, driver.Reserved{Count: 3, Wait: 700 * ms, Spacing: 100 * ms, Issuing: true}, 50*ms, 0, nil)
	require.NoError(t, err)
	require.Equal(t, 950*ms, p.Request(time.Second, 2, Observation{Demand: driver.Whole}).Reach, "50 for the way, 700, and two spacings")
	require.Equal(t, 450*ms, p.Request(1500*ms, 3, Observation{Demand: driver.Whole}).Reach)

	_, o = p.Reserve(1500*ms, sharing.Order{Count: 1, Spacing: 100 * ms, Ahead: 10})
	_, err = p.Reserved(o, driver.Reserved{Spacing: 100 * ms, Retry: time.Hour, Issuing: true}, 10*ms, 0, nil)
	require.NoError(t, err)
	_, err = p.Reserved(o, driver.Reserved{}, 10*ms, 0, errors.New("lost"))
	require.Error(t, err)
	require.Equal(t, 450*ms, p.Request(1500*ms, 4, Observation{Demand: driver.Whole}).Reach, "what brought nothing changes nothing")
	require.Zero(t, p.Request(1950*ms, 5, Observation{Demand: driver.Whole}).Reach, "they are past")
}
