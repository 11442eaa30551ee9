package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/program"
)

// deploymentSettings are the settings of one of several deployments. Unset ones are the program's.
type deploymentSettings struct {
	Name string
	// says is its own text, and all the text of all deployments.
	says *yaml.Node
	all  string
}

// mostDeployments bounds the number of deployments.
const mostDeployments = 10

// ofDeployment are the settings that a deployment can have, and apiKeyEnv.
var ofDeployment = append(append(fieldsNamed(ownFields, "provider", "api", "baseURL", "apiVersion", "model", "apiKeyFile", "maxTokens", "maxTokensField",
	"maxPromptTokens", "maxInputs", "maxInputTokens", "maxCallTokens", "extraBody", "requestsPerMinute", "inFlight"),
	llmFields...),
	config.TextField("apiKeyEnv", "the name of a variable", "none", "The variable that holds the key", func(s *settings) *string { return &s.APIKeyEnv }))

func fieldsNamed(fields []config.Field[*settings], keys ...string) []config.Field[*settings] {
	return slices.DeleteFunc(slices.Clone(fields), func(f config.Field[*settings]) bool { return !slices.Contains(keys, f.Key) })
}

var manyFields = []config.Field[*settings]{
	{
		Key: "deployments", Example: "{large: {model: gpt-4o}, small: {model: gpt-4o-mini}}",
		Allowed: "a mapping of names to settings, in the variable too",
		Default: "none",
		Doc:     "Deployments or models in order of preference, each with limits of its own",
		Value: config.Block(readDeployments, func(s *settings) string {
			if len(s.Deployments) == 0 {
				return ""
			}
			return s.Deployments[0].all
		}),
	},
	config.DurationField("spillAfter", 10*time.Millisecond, time.Minute, "`1s`",
		"How long a message waits for the limits of a deployment before it goes to the next; with `deployments`",
		func(s *settings) *time.Duration { return &s.SpillAfter }).Like("500ms"),
}

var deploymentName = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,30}[a-z0-9])?$`)

const aDeploymentName = "1 to 32 of a-z, 0-9, - and ., with a letter or digit at both ends"

// readDeployments reads the setting, and returns all faults of its form.
func readDeployments(s *settings, n *yaml.Node) []config.BlockFault {
	const field = "deployments"
	entries, faults := config.Entries(n, field, mostDeployments, "a mapping of names to settings")
	s.Deployments = nil
	for _, e := range entries {
		if !deploymentName.MatchString(e.Name) {
			faults = append(faults, config.BlockFault{Field: field, Problem: fmt.Sprintf("has the name %.60q", e.Name), Allowed: aDeploymentName, Line: e.Line})
			continue
		}
		var scratch settings
		faults = append(faults, config.Mapping(ofDeployment, e.Value, field+"."+e.Name, &scratch)...)
		s.Deployments = append(s.Deployments, deploymentSettings{Name: e.Name, says: e.Value})
	}
	if len(faults) == 0 && len(entries) == 0 {
		faults = append(faults, config.BlockFault{Field: field, Problem: "is an empty mapping", Allowed: "at least one deployment", Line: n.Line})
	}
	all := config.OneLine(n)
	for i := range s.Deployments {
		s.Deployments[i].all = all
	}
	return faults
}

// target returns the settings of one deployment. A deployment at another place uses neither the URL nor the key of the program: a key is
// never sent to the wrong place.
func (s *settings) target(d deploymentSettings, bad program.Complaint) settings {
	var own settings
	config.Mapping(ofDeployment, d.says, "", &own)
	t := *s
	t.Deployment, t.Deployments = d.Name, nil
	if own.Provider != "" {
		t.BaseURL, t.APIVersion = "", ""
	}
	if own.API != "" {
		t.MaxTokensField = ""
	}
	elsewhere := own.Provider != "" || own.BaseURL != ""
	if elsewhere || own.APIKey.File != "" || own.APIKeyEnv != "" {
		t.APIKey = program.Credential{}
	}
	if name := s.loginHeader(); elsewhere && name != "" {
		bad("headers", "sets "+name+", which would be sent to a deployment at another place", "apiKeyFile or apiKeyEnv of each deployment")
	}
	config.Mapping(ofDeployment, d.says, "", &t)
	if t.APIKeyEnv != "" {
		key, problem := config.CleanSecret(os.Getenv(t.APIKeyEnv))
		switch {
		case t.APIKey.File != "":
			bad("apiKeyEnv", "is set, and so is apiKeyFile", "one of them")
		case key == "":
			bad("apiKeyEnv", fmt.Sprintf("is %q, a variable that is not set", t.APIKeyEnv), "a variable that holds the key")
		case problem != "":
			bad("apiKeyEnv", fmt.Sprintf("is %q, a variable that %s", t.APIKeyEnv, problem), "a variable that holds the key")
		case config.HeaderProblem(key) != "":
			bad("apiKeyEnv", fmt.Sprintf("is %q, a variable whose value %s", t.APIKeyEnv, config.HeaderProblem(key)), "a key that a header can hold")
		default:
			t.APIKey.Text = numathrottle.NewSecret(key)
		}
	}
	t.Pool.Pool += "/" + d.Name
	return t
}

// checkTargets checks each deployment and keeps its settings with their defaults, in order of preference. Faults have the deployment's name
// before the field. The program's own defaults are filled in later: they would hide those of another provider.
func (s *settings) checkTargets(r *config.Reading, bad program.Complaint) {
	models := []string{s.Model}
	if len(s.Deployments) == 0 {
		if s.SpillAfter > 0 {
			bad("spillAfter", "is set without deployments", "with deployments")
		}
		s.check(bad)
	} else {
		models = nil
	}
	for _, d := range s.Deployments {
		of := func(field, problem, allowed string) { bad("deployments."+d.Name+": "+field, problem, allowed) }
		t := s.target(d, of)
		t.check(of)
		s.targets = append(s.targets, withDefaults(t))
		models = append(models, t.Model)
	}
	s.checkOneKind(bad)
	s.checkMoney(models, r, bad)
}

// check finds the faults of one deployment.
func (s *settings) check(bad program.Complaint) {
	s.checkTogether(bad)
	s.checkTexts(bad)
	whole := withDefaults(*s)
	whole.checkRequest(bad)
	whole.checkLimits(bad)
}

// longestPool is the maximum length of the pool's name, so that the names of those below it fit.
func (s *settings) longestPool() int {
	longest := 0
	for _, d := range s.Deployments {
		longest = max(longest, len("/"+d.Name))
	}
	return 256 - len(longestSuffix) - longest
}

// names returns the names of the deployments.
func (s *settings) names() string {
	names := make([]string, len(s.Deployments))
	for i, d := range s.Deployments {
		names[i] = d.Name
	}
	return strings.Join(names, ", ")
}
