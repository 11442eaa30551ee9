package noloss

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// A message is what is known of one message.
type message struct {
	// Sent, Failed and Answered are the driver's: how often it was sent, seen to fail,
	// and answered for good.
	Sent, Failed, Answered int
	// Wrong is an answer that is not what the handler returns.
	Wrong string
	// Finished is how often a handler has noted that it finished it.
	Finished int
}

// broken says what is wrong with it; empty when nothing is.
func (m message) broken() string {
	switch {
	case m.Answered > 0 && m.Finished == 0:
		return fmt.Sprintf("lost: acknowledged, and no handler has finished it (answer: %q)", m.Wrong)
	case m.Answered == 0:
		return "lost: never answered"
	case m.Answered > 1:
		return fmt.Sprintf("answered %d times", m.Answered)
	case m.Wrong != "":
		return fmt.Sprintf("answered with %q", m.Wrong)
	case m.Sent != m.Answered+m.Failed:
		return fmt.Sprintf("sent %d times, answered %d, seen to fail %d", m.Sent, m.Answered, m.Failed)
	case m.Finished > m.Sent:
		return fmt.Sprintf("finished %d times, sent only %d", m.Finished, m.Sent)
	}
	return ""
}

// A verdict sums up the messages of a lane.
type verdict struct {
	Messages int
	// Resent is how often a message was sent again, Duplicates how often one was
	// finished again.
	Resent, Duplicates int
	// Broken says of each message that broke the promise how.
	Broken []string
}

func judge(lane string, messages []message) verdict {
	v := verdict{Messages: len(messages)}
	for id, m := range messages {
		v.Resent += max(0, m.Sent-1)
		v.Duplicates += max(0, m.Finished-1)
		if text := m.broken(); text != "" {
			v.Broken = append(v.Broken, fmt.Sprintf("%s: message %d: %s", lane, id, text))
		}
	}
	return v
}

func TestTheJudgeSeesEachWayToBreakThePromise(t *testing.T) {
	for name, c := range map[string]struct {
		m    message
		text string
	}{
		"at once":                   {message{Sent: 1, Answered: 1, Finished: 1}, ""},
		"after a failure":           {message{Sent: 3, Failed: 2, Answered: 1, Finished: 1}, ""},
		"finished at every try":     {message{Sent: 3, Failed: 2, Answered: 1, Finished: 3}, ""},
		"acknowledged, not handled": {message{Sent: 1, Answered: 1, Wrong: "empty"}, "lost: acknowledged"},
		"never answered":            {message{Sent: 2, Failed: 2, Finished: 1}, "lost: never answered"},
		"never sent":                {message{}, "lost: never answered"},
		"answered twice":            {message{Sent: 2, Answered: 2, Finished: 2}, "answered 2 times"},
		"answered with another":     {message{Sent: 1, Answered: 1, Wrong: "done 7", Finished: 1}, `answered with "done 7"`},
		"one try without an end":    {message{Sent: 2, Answered: 1, Finished: 1}, "sent 2 times"},
		"handled by itself":         {message{Sent: 1, Answered: 1, Finished: 2}, "finished 2 times"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.text == "" {
				require.Empty(t, c.m.broken())
			} else {
				require.Contains(t, c.m.broken(), c.text)
			}
		})
	}
	v := judge("lane", []message{
		{Sent: 1, Answered: 1, Finished: 1}, {Sent: 3, Failed: 2, Answered: 1, Finished: 2}, {Sent: 1, Answered: 1},
	})
	require.Equal(t, verdict{Messages: 3, Resent: 2, Duplicates: 1, Broken: []string{
		`lane: message 2: lost: acknowledged, and no handler has finished it (answer: "")`,
	}}, v)
}
