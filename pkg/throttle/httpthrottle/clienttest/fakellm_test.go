package clienttest

import (
	"net/http/httptest"
	"testing"

	community "github.com/sashabaranov/go-openai"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/examples/llm-map/fakellm"
)

// A real client understands the answers of the fake provider, streamed or not.
func TestFakeLLM(t *testing.T) {
	s, err := fakellm.New(fakellm.Config{})
	require.NoError(t, err)
	server := httptest.NewServer(s)
	defer server.Close()
	c := community.DefaultConfig("")
	c.BaseURL = server.URL + "/v1"
	client := community.NewClientWithConfig(c)
	req := community.ChatCompletionRequest{
		Model: "m", MaxCompletionTokens: 30, Messages: []community.ChatCompletionMessage{{Role: "user", Content: "say something nice"}},
	}
	resp, err := client.CreateChatCompletion(t.Context(), req)
	require.NoError(t, err)
	require.NotEmpty(t, resp.Choices[0].Message.Content)
	require.Equal(t, resp.Usage.TotalTokens, resp.Usage.PromptTokens+resp.Usage.CompletionTokens)

	req.StreamOptions = &community.StreamOptions{IncludeUsage: true}
	stream, err := client.CreateChatCompletionStream(t.Context(), req)
	require.NoError(t, err)
	defer stream.Close()
	var text string
	var usage *community.Usage
	for {
		event, err := stream.Recv()
		if err != nil {
			break
		}
		if event.Usage != nil {
			usage = event.Usage
		}
		for _, choice := range event.Choices {
			text += choice.Delta.Content
		}
	}
	require.Equal(t, resp.Choices[0].Message.Content, text)
	require.Equal(t, resp.Usage.TotalTokens, usage.TotalTokens)
	require.Equal(t, 2, s.Stats().Served)
}
