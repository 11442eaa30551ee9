package admission_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/admission"
	"github.com/numaproj-contrib/numathrottle/internal/costrule"
)

func TestPayloadCost(t *testing.T) {
	for _, c := range []struct{ per, size, want int }{
		{100, 0, 1},
		{100, 1, 1},
		{100, 100, 1},
		{100, 101, 2},
		{100, 1000, 10},
		{1, 7, 7},
		{0, 7, 7},
		{-5, 7, 7},
	} {
		require.Equal(t, c.want, admission.PayloadCost(c.per)(make([]byte, c.size)), "%d bytes, one token per %d", c.size, c.per)
	}
}

func TestHeaderCost(t *testing.T) {
	for header, want := range map[string]int{
		"7": 7, "0": 0, "7.5": 8, "5e2": 500, "7\t": 7, "2147483647": 2147483647, "99999999999": costrule.Ungrantable,
		"-3": costrule.Ungrantable, "": costrule.Ungrantable, "seven": costrule.Ungrantable, "0x10": costrule.Ungrantable,
	} {
		require.Equal(t, want, admission.HeaderCost("cost")(map[string]string{"cost": header}), header)
	}
	require.Equal(t, 1, admission.ReadHeaderCost("cost")(map[string]string{"cost": "seven"}), "it is read already")
	require.Equal(t, 500, admission.ReadHeaderCost("cost")(map[string]string{"cost": "5e2"}))
	require.Equal(t, 1, admission.HeaderCost("cost")(map[string]string{"Cost": "7"}), "no such header")
	require.Equal(t, 1, admission.HeaderCost("cost")(nil))
}

func TestTagsOfAMessage(t *testing.T) {
	require.Equal(t, "a", admission.HeaderTag("tenant")(map[string]string{"tenant": "a"}))
	require.Empty(t, admission.HeaderTag("tenant")(nil))
	keys := []string{"x", "y"}
	for index, want := range map[int]string{0: "x", 1: "y", 2: "", -1: ""} {
		require.Equal(t, want, admission.KeyTag(index)(keys), index)
	}
	require.Empty(t, admission.KeyTag(0)(nil))
}
