package clienttest

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	openaioption "github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/stretchr/testify/require"
	"github.com/tmc/langchaingo/llms"
	langchain "github.com/tmc/langchaingo/llms/openai"
	"google.golang.org/genai"
)

// longest is the longest answer that every call for one allows, in tokens.
const longest = 256

// prompts are the texts of a call for embeddings.
var prompts = []string{"a text of twenty-four byt", "and another, with 31 of these :", "three"}

// A call is one way to ask a provider by one library. It returns the text of the answer, or nothing if the answer is vectors.
type call func(ctx context.Context, t *testing.T, url string, client *http.Client) (string, error)

const prompt = "say something nice about the rain"

// calls are those of all libraries, with their own retries off.
var calls = map[string]call{
	"openai-go chat":             openAIChat,
	"openai-go chat, streamed":   openAIChatStreamed,
	"openai-go response":         openAIResponse,
	"openai-go response, stream": openAIResponseStreamed,
	"openai-go embeddings":       openAIEmbeddings,
	"langchaingo chat":           langchainChat(),
	"langchaingo chat, streamed": langchainChat(llms.WithStreamingFunc(func(context.Context, []byte) error { return nil })),
	"langchaingo embeddings":     langchainEmbeddings,
	"anthropic-sdk-go":           anthropicMessage,
	"anthropic-sdk-go, streamed": anthropicMessageStreamed,
	"genai":                      geminiContent,
	"genai, streamed":            geminiContentStreamed,
	"genai embeddings":           geminiEmbeddings,
}

func openAI(url string, client *http.Client) openai.Client {
	return openai.NewClient(openaioption.WithBaseURL(url+"/v1"), openaioption.WithAPIKey("sesame"), openaioption.WithMaxRetries(0),
		openaioption.WithHTTPClient(client))
}

func openAIChatParams() openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model: "m", MaxCompletionTokens: openai.Int(longest), Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(prompt)},
	}
}

func openAIChat(ctx context.Context, _ *testing.T, url string, client *http.Client) (string, error) {
	c := openAI(url, client)
	res, err := c.Chat.Completions.New(ctx, openAIChatParams())
	if err != nil {
		return "", err
	}
	return res.Choices[0].Message.Content, nil
}

func openAIChatStreamed(ctx context.Context, _ *testing.T, url string, client *http.Client) (string, error) {
	c := openAI(url, client)
	params := openAIChatParams()
	params.StreamOptions.IncludeUsage = openai.Bool(true)
	stream := c.Chat.Completions.NewStreaming(ctx, params)
	defer func() { _ = stream.Close() }()
	var text strings.Builder
	for stream.Next() {
		for _, choice := range stream.Current().Choices {
			text.WriteString(choice.Delta.Content)
		}
	}
	return text.String(), stream.Err()
}

func openAIResponseParams() responses.ResponseNewParams {
	return responses.ResponseNewParams{
		Model: "m", MaxOutputTokens: openai.Int(longest), Input: responses.ResponseNewParamsInputUnion{OfString: openai.String(prompt)},
	}
}

func openAIResponse(ctx context.Context, _ *testing.T, url string, client *http.Client) (string, error) {
	c := openAI(url, client)
	res, err := c.Responses.New(ctx, openAIResponseParams())
	if err != nil {
		return "", err
	}
	return res.OutputText(), nil
}

func openAIResponseStreamed(ctx context.Context, _ *testing.T, url string, client *http.Client) (string, error) {
	c := openAI(url, client)
	stream := c.Responses.NewStreaming(ctx, openAIResponseParams())
	defer func() { _ = stream.Close() }()
	var text strings.Builder
	for stream.Next() {
		if event := stream.Current(); event.Type == "response.output_text.delta" {
			text.WriteString(event.Delta)
		}
	}
	return text.String(), stream.Err()
}

func openAIEmbeddings(ctx context.Context, t *testing.T, url string, client *http.Client) (string, error) {
	c := openAI(url, client)
	res, err := c.Embeddings.New(ctx, openai.EmbeddingNewParams{
		Model: "m", Input: openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: prompts},
	})
	if err == nil {
		require.Len(t, res.Data, len(prompts))
	}
	return "", err
}

func langchainOpenAI(t *testing.T, url string, client *http.Client) *langchain.LLM {
	c, err := langchain.New(langchain.WithToken("sesame"), langchain.WithBaseURL(url+"/v1"), langchain.WithModel("m"),
		langchain.WithEmbeddingModel("m"), langchain.WithHTTPClient(client))
	require.NoError(t, err)
	return c
}

func langchainChat(opts ...llms.CallOption) call {
	return func(ctx context.Context, t *testing.T, url string, client *http.Client) (string, error) {
		c := langchainOpenAI(t, url, client)
		asked := []llms.MessageContent{llms.TextParts(llms.ChatMessageTypeHuman, prompt)}
		res, err := c.GenerateContent(ctx, asked, append(opts, llms.WithMaxTokens(longest))...)
		if err != nil {
			return "", err
		}
		return res.Choices[0].Content, nil
	}
}

func langchainEmbeddings(ctx context.Context, t *testing.T, url string, client *http.Client) (string, error) {
	vectors, err := langchainOpenAI(t, url, client).CreateEmbedding(ctx, prompts)
	if err == nil {
		require.Len(t, vectors, len(prompts))
	}
	return "", err
}

func anthropicClient(url string, client *http.Client) anthropic.Client {
	return anthropic.NewClient(anthropicoption.WithBaseURL(url), anthropicoption.WithAPIKey("sesame"), anthropicoption.WithMaxRetries(0),
		anthropicoption.WithHTTPClient(client))
}

func anthropicParams() anthropic.MessageNewParams {
	return anthropic.MessageNewParams{
		Model: "m", MaxTokens: longest, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(prompt))},
	}
}

func anthropicMessage(ctx context.Context, _ *testing.T, url string, client *http.Client) (string, error) {
	c := anthropicClient(url, client)
	res, err := c.Messages.New(ctx, anthropicParams())
	if err != nil {
		return "", err
	}
	return res.Content[0].Text, nil
}

func anthropicMessageStreamed(ctx context.Context, _ *testing.T, url string, client *http.Client) (string, error) {
	c := anthropicClient(url, client)
	stream := c.Messages.NewStreaming(ctx, anthropicParams())
	defer func() { _ = stream.Close() }()
	var message anthropic.Message
	for stream.Next() {
		if err := message.Accumulate(stream.Current()); err != nil {
			return "", err
		}
	}
	if err := stream.Err(); err != nil {
		return "", err
	}
	return message.Content[0].Text, nil
}

func gemini(ctx context.Context, t *testing.T, url string, client *http.Client) *genai.Client {
	c, err := genai.NewClient(ctx, &genai.ClientConfig{
		APIKey: "sesame", Backend: genai.BackendGeminiAPI, HTTPClient: client, HTTPOptions: genai.HTTPOptions{BaseURL: url},
	})
	require.NoError(t, err)
	return c
}

func geminiContent(ctx context.Context, t *testing.T, url string, client *http.Client) (string, error) {
	res, err := gemini(ctx, t, url, client).Models.GenerateContent(ctx, "m", genai.Text(prompt), &genai.GenerateContentConfig{MaxOutputTokens: longest})
	if err != nil {
		return "", err
	}
	return res.Text(), nil
}

func geminiContentStreamed(ctx context.Context, t *testing.T, url string, client *http.Client) (string, error) {
	var text strings.Builder
	config := &genai.GenerateContentConfig{MaxOutputTokens: longest}
	for res, err := range gemini(ctx, t, url, client).Models.GenerateContentStream(ctx, "m", genai.Text(prompt), config) {
		if err != nil {
			return "", err
		}
		text.WriteString(res.Text())
	}
	return text.String(), nil
}

func geminiEmbeddings(ctx context.Context, t *testing.T, url string, client *http.Client) (string, error) {
	var contents []*genai.Content
	for _, text := range prompts {
		contents = append(contents, genai.NewContentFromText(text, genai.RoleUser))
	}
	res, err := gemini(ctx, t, url, client).Models.EmbedContent(ctx, "m", contents, nil)
	if err == nil {
		require.Len(t, res.Embeddings, len(prompts))
	}
	return "", err
}
