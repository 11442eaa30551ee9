package main

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/testkit/scenario"
)

func TestSettingsFromFileAndEnvironment(t *testing.T) {
	clearEnv(t)
	dir := t.TempDir()
	key := filepath.Join(dir, "key")
	require.NoError(t, os.WriteFile(key, []byte(canary+"\n"), 0o600))
	template := filepath.Join(dir, "prompt")
	require.NoError(t, os.WriteFile(template, []byte("Say {{.Text}}\n"), 0o600))
	file := filepath.Join(dir, "config.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`
provider: anthropic
model: claude
apiKeyFile: `+key+`
system: |
  Be kind.
  Be brief.
promptFile: `+template+`
requestsPerMinute: 50
tokensPerMinute: 40000
inFlight: 16
store: nats://isb:4222
storePassword: `+canary+`
storeUsername: u
lease: 5s
`), 0o600))
	t.Setenv(config.FileVariable, file)
	t.Setenv("LLM_MAP_MODEL", "claude-2")
	t.Setenv("NUMAFLOW_NAMESPACE", "ns")
	t.Setenv("NUMAFLOW_PIPELINE_NAME", "pipe")
	t.Setenv("NUMAFLOW_VERTEX_NAME", "vertex")
	s, err := loadSettings()
	require.NoError(t, err)
	require.Equal(t, "claude-2", s.Model, "the environment wins")
	require.Equal(t, "https://api.anthropic.com/v1", s.BaseURL)
	require.Equal(t, "Be kind.\nBe brief.\n", s.System)
	require.Equal(t, "Say {{.Text}}", s.Prompt)
	require.Equal(t, "ns/pipe/vertex", s.Pool.Pool)
	require.Equal(t, 5*time.Second, s.Pool.Lease)
	require.Equal(t, 2*time.Minute, s.Timeout)
	require.Equal(t, holdOnStop, s.OnStop)
	got, err := s.APIKey.ReadHeader()
	require.NoError(t, err)
	require.Equal(t, canary, got)

	var out, errOut bytes.Buffer
	require.NoError(t, llmMap.Run(t.Context(), []string{"--check"}, &out, &errOut))
	require.Contains(t, out.String(), `model: "claude-2"`)
	require.Contains(t, out.String(), "nats://isb:4222")
	require.NotContains(t, out.String()+errOut.String(), canary)
}

func TestEveryFaultIsTold(t *testing.T) {
	clearEnv(t)
	for name, value := range map[string]string{
		"LLM_MAP_PROVIDER":            "watsonx",
		"LLM_MAP_BASE_URL":            "https://user:" + canary + "@host/v1",
		"LLM_MAP_API_KEY":             canary,
		"LLM_MAP_API_KEY_FILE":        "/nowhere/key",
		"LLM_MAP_API_VERSION":         "1",
		"LLM_MAP_PROMPT":              "{{printf .Text}}",
		"LLM_MAP_SYSTEM":              "a",
		"LLM_MAP_SYSTEM_FILE":         "/nowhere/system",
		"LLM_MAP_TEMPERATURE":         "NaN",
		"LLM_MAP_MAX_TOKENS":          "500",
		"LLM_MAP_OUTPUT_TOKENS":       "500",
		"LLM_MAP_TOKENS_PER_MINUTE":   "400",
		"LLM_MAP_REQUESTS_PER_MINUTE": "-1",
		"LLM_MAP_BURST_TIME":          "2m",
		"LLM_MAP_ON_STOP":             "panic",
		"LLM_MAP_MAX_WAIT":            "5s",
		"LLM_MAP_MODELL":              "m",
		"NUMATHROTTLE_MAX":            "5",
		"NUMATHROTTLE_PER":            "5s",
		"NUMATHROTTLE_STORE":          "http://host",
		"NUMATHROTTLE_POOL":           strings.Repeat("p", 250),
	} {
		t.Setenv(name, value)
	}
	var out, errOut bytes.Buffer
	err := llmMap.Run(context.Background(), []string{"--check"}, &out, &errOut)
	require.Error(t, err)
	text := err.Error()
	for _, want := range []string{
		"provider is \"watsonx\" (LLM_MAP_PROVIDER), allowed: `openai`, `azure`, `anthropic`, `gemini`, ",
		"baseURL is not as it should be (not shown) (LLM_MAP_BASE_URL)",
		"apiKeyFile is set, and so is apiKey", "which cannot be used: no such file or directory", "apiVersion is set, but the provider is openai",
		`prompt is no template that can be used: template: prompt:1: function "printf" not defined`,
		"systemFile is set, and so is system", "systemFile is \"/nowhere/system\", which cannot be read",
		`temperature is "NaN"`, "outputTokens is set, and so is maxTokens", "maxTokens is 500, which no call could ever draw",
		`requestsPerMinute is "-1"`, `burstTime is "2m"`, `onStop is "panic"`, "LLM_MAP_MODELL is not a variable of llm-map; did you mean LLM_MAP_MODEL?",
		"NUMATHROTTLE_PER is a setting of the library, and none of this program", `max is "5" (NUMATHROTTLE_MAX), allowed: `,
		`store has the scheme "http"`, "pool has 250 bytes",
		"maxWait is set without an onDenied that ends the wait",
	} {
		require.Contains(t, text, want)
	}
	require.NotContains(t, text, "model is not set", "it is told already what was meant for it")
	require.Equal(t, 20, strings.Count(text, "\n")+1, "a line for each: %s", text)
	require.NotContains(t, text+out.String()+errOut.String(), canary)
}

func TestRequiredSettings(t *testing.T) {
	for _, c := range []struct{ provider, want string }{
		{"openai", "apiKey and apiKeyFile are not set"},
		{"azure", "baseURL is not set, and azure has none of its own"},
		{"self-hosted", "baseURL is not set, and self-hosted has none of its own"},
	} {
		clearEnv(t)
		t.Setenv("LLM_MAP_PROVIDER", c.provider)
		t.Setenv("LLM_MAP_MODEL", "m")
		_, err := loadSettings()
		require.ErrorContains(t, err, c.want)
	}
	t.Setenv("LLM_MAP_API_KEY", canary+"é")
	_, err := loadSettings()
	require.ErrorContains(t, err, "apiKey has a character that is not ASCII at byte 18, which a header cannot hold")
	require.ErrorContains(t, llmMap.Run(t.Context(), []string{"serve"}, &bytes.Buffer{}, &bytes.Buffer{}), `"serve" is no flag`)
}

// The limits follow what the service announces, in the settings and in a deployment; where nothing is announced that is a fault.
func TestAnnouncedLimits(t *testing.T) {
	check := func(provider string, variables ...string) error {
		clearEnv(t)
		t.Setenv("LLM_MAP_MODEL", "m")
		t.Setenv("LLM_MAP_API_KEY", canary)
		t.Setenv("LLM_MAP_BASE_URL", "http://h")
		t.Setenv("NUMATHROTTLE_STORE", "memory://x")
		t.Setenv("LLM_MAP_PROVIDER", provider)
		for set := range slices.Chunk(variables, 2) {
			t.Setenv(set[0], set[1])
		}
		return llmMap.Run(t.Context(), []string{"--check"}, io.Discard, io.Discard)
	}
	for _, variable := range []string{"NUMATHROTTLE_MAX", "LLM_MAP_MAX"} {
		require.NoError(t, check("mistral", variable, "announced"))
		for _, provider := range []string{"gemini", "bedrock", "openrouter", "self-hosted"} {
			require.ErrorContains(t, check(provider, variable, "announced"), "max is announced, but "+provider+" announces no limits")
		}
	}
	require.NoError(t, check("mistral", "LLM_MAP_MAX", "announced", "LLM_MAP_STRICT", "true"), "it has a limit on requests")
	require.ErrorContains(t, check("groq", "LLM_MAP_MAX", "announced", "LLM_MAP_STRICT", "true"), "there is no limit on requests")
	require.NoError(t, check("groq", "LLM_MAP_DEPLOYMENTS", "{a: {max: announced}, b: {tokensPerMinute: 500}}"))
	require.ErrorContains(t, check("gemini", "LLM_MAP_DEPLOYMENTS", "{a: {max: announced}, b: {tokensPerMinute: 500}}"), "gemini announces no limits")
}

// The pipeline of the example sets what this program reads, and its configuration is
// without a fault, but for the key, which is not here.
func TestPipeline(t *testing.T) {
	clearEnv(t)
	content, err := os.ReadFile("pipeline.yaml")
	require.NoError(t, err)
	var settingsFile struct{ Data map[string]string }
	var pipeline struct {
		Spec struct {
			Vertices []struct {
				Udf struct {
					Container struct {
						Env []struct{ Name, Value string }
					}
				}
			}
		}
	}
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	require.NoError(t, decoder.Decode(&settingsFile))
	require.NoError(t, decoder.Decode(&pipeline))
	file := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(file, []byte(settingsFile.Data["config.yaml"]), 0o600))
	env := pipeline.Spec.Vertices[1].Udf.Container.Env
	require.NotEmpty(t, env)
	for _, variable := range env {
		t.Setenv(variable.Name, cmp.Or(variable.Value, "from a secret"))
	}
	t.Setenv(config.FileVariable, file)
	t.Setenv("NUMATHROTTLE_POOL", "p")
	s, err := loadSettings()
	require.ErrorContains(t, err, `apiKeyFile is "/var/run/secrets/llm/api-key", which cannot be used`)
	require.Equal(t, 1, strings.Count(err.Error(), "\n")+1, err)
	require.Equal(t, 190_000, s.TokensPerMinute)
	require.Equal(t, "nats://isbsvc-default-js-svc:4222", s.Pool.Store)
}

// TestReference compares the table in the README with the one that follows from the
// settings. With -update it writes it. The examples that are templates compile.
func TestReference(t *testing.T) {
	content, err := os.ReadFile("README.md")
	require.NoError(t, err)
	require.Empty(t, config.Incomplete(fields))
	clearEnv(t)
	for _, row := range config.Rows(fields) {
		if strings.Contains(row.Example, "{{") || row.Key == "model" || row.Key == "apiKey" {
			t.Setenv(row.Variables[0], row.Example)
		}
	}
	_, err = loadSettings()
	require.NoError(t, err)
	rows := slices.DeleteFunc(config.Rows(fields), func(r config.Row) bool { return r.Topic == rampFields[0].Topic }) // they are in docs/settings.md
	want, err := config.ReplaceTable(string(content), "settings", config.RowTable(rows))
	require.NoError(t, err)
	if *scenario.Update {
		require.NoError(t, os.WriteFile("README.md", []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(content), "run: go test ./examples/llm-map -run TestReference -update")
}

// The settings that README.md shows load, with keys in the place of those that it names.
func TestSettingsOfThePage(t *testing.T) {
	content, err := os.ReadFile("README.md")
	require.NoError(t, err)
	key := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(key, []byte(canary), 0o600))
	snippets := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(content), -1)
	require.Len(t, snippets, 6)
	for _, snippet := range snippets {
		text := strings.ReplaceAll(snippet[1], "/var/run/secrets/llm/api-key", key)
		if !strings.Contains(text, "model:") {
			text += "model: gpt-4o-mini\napiKeyFile: " + key + "\n"
		}
		clearEnv(t)
		file := filepath.Join(t.TempDir(), "config.yaml")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		t.Setenv(config.FileVariable, file)
		t.Setenv("AZURE_KEY", canary)
		t.Setenv("NUMATHROTTLE_POOL", "p")
		_, err := loadSettings()
		require.NoError(t, err, text)
	}
}
