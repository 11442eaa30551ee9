package handlerproxy

import (
	"fmt"
	"slices"
	"strings"

	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"
	sinksdk "github.com/numaproj/numaflow-go/pkg/sinker"
	sourcesdk "github.com/numaproj/numaflow-go/pkg/sourcer"
	transformsdk "github.com/numaproj/numaflow-go/pkg/sourcetransformer"

	"github.com/numaproj-contrib/numathrottle/internal/admission"
	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/taglevel"
	"github.com/numaproj-contrib/numathrottle/pkg/mapper"
	"github.com/numaproj-contrib/numathrottle/pkg/sinker"
	"github.com/numaproj-contrib/numathrottle/pkg/sourcer"
)

// What can happen to a message without tokens.
const (
	actionWait     = "wait"
	actionNack     = "nack"
	actionDrop     = "drop"
	actionFail     = "fail"
	actionFallback = "fallback"
	actionForward  = "forward"

	allowedActions = "`wait`, `nack`, `drop`, `forward TAG[,TAG]`, and for sinks `fail` and `fallback`"
)

// rules are the settings for a message.
type rules struct {
	cost      func(value func() []byte, headers func() map[string]string) int // nil: one token
	tag       admission.TagRule
	twoLevels bool // of tags
	needsKeys bool
	forward   []string // the tags of a message that is forwarded unchanged
}

func (c Config) rules() rules {
	var r rules
	r.tag, r.twoLevels = taglevel.Messages(c.Tag)
	r.needsKeys = slices.ContainsFunc(config.Listed(c.Tag), func(rule string) bool { return strings.HasPrefix(rule, "key ") })
	_, r.forward, _ = parseAction(c.OnDenied)
	return r
}

// parseAction parses the action for a denied message, with the tags of a forward.
func parseAction(text string) (action string, tags []string, ok bool) {
	word, argument, found := strings.Cut(text, " ")
	if word != actionForward {
		plain := []string{"", actionWait, actionNack, actionDrop, actionFail, actionFallback}
		return word, nil, !found && slices.Contains(plain, word)
	}
	for tag := range strings.SplitSeq(argument, ",") {
		tag = strings.TrimSpace(tag)
		if !admission.IsForwardTag(tag) {
			return word, nil, false
		}
		tags = append(tags, tag)
	}
	return word, tags, true
}

// checkActions finds actions that the kind does not support, and those without a bound on the wait.
func (c Config) checkActions(bad func(field, problem, allowed string)) {
	action, _, _ := parseAction(c.OnDenied)
	value := fmt.Sprintf("is %q for kind %s", c.OnDenied, c.Kind)
	allowed := []string{actionWait, actionNack, actionDrop, actionForward}
	switch {
	case c.Kind == Source:
		allowed = []string{actionWait}
	case c.Kind == Sink:
		allowed = []string{actionWait, actionNack, actionDrop, actionFail, actionFallback}
	case c.Kind.isSink():
		allowed = []string{actionWait, actionNack, actionDrop, actionFail}
	case c.PerOutput:
		allowed = []string{actionWait}
		value += " with perOutput"
	}
	if !slices.Contains(allowed, action) {
		bad("onDenied", value, strings.Join(allowed, ", "))
		return
	}
	bounded := c.MaxWait > 0 || c.BatchBudget > 0
	switch {
	case action == actionWait && bounded && c.Kind != Source:
		bad("onDenied", value+" with a bound on the wait", "what ends it: "+strings.Join(allowed[min(1, len(allowed)-1):], ", "))
	case action != actionWait && !bounded:
		bad("maxWait", "is not set with onDenied "+action, "a duration")
	}
}

// The zero Action of a wrapper waits.

func (p *proxy) mapOptions() []mapper.Option {
	denied := map[string]mapper.Action{actionNack: mapper.Nack(), actionDrop: mapper.Drop(), actionForward: mapper.Forward(p.rules.forward...)}
	opts := []mapper.Option{mapper.WithMaxWait(p.MaxWait), mapper.WithLogger(p.log), mapper.OnDenied(denied[p.action])}
	if p.ExemptDropped {
		opts = append(opts, mapper.ExemptDropped())
	}
	if cost := p.rules.cost; cost != nil {
		opts = append(opts, mapper.WithCost(func(_ []string, d mapsdk.Datum) int { return cost(d.Value, d.Headers) }))
	}
	if tag := p.rules.tag; tag != nil {
		opts = append(opts, mapper.WithTag(func(keys []string, d mapsdk.Datum) string { return tag(keys, d.Value, d.Headers) }))
	}
	return opts
}

func (p *proxy) transformOptions() []sourcer.TransformerOption {
	opts := []sourcer.TransformerOption{sourcer.WithMaxWait(p.MaxWait), sourcer.WithLogger(p.log)}
	switch p.action {
	case actionNack:
		opts = append(opts, sourcer.OnDenied(sourcer.Nack()))
	case actionDrop:
		opts = append(opts, sourcer.OnDenied(sourcer.Drop()))
	case actionForward:
		opts = append(opts, sourcer.OnDenied(sourcer.Forward(p.rules.forward...)))
	}
	if p.ExemptDropped {
		opts = append(opts, sourcer.ExemptDropped())
	}
	if cost := p.rules.cost; cost != nil {
		opts = append(opts, sourcer.WithCost(func(_ []string, d transformsdk.Datum) int { return cost(d.Value, d.Headers) }))
	}
	if tag := p.rules.tag; tag != nil {
		opts = append(opts, sourcer.WithTag(func(keys []string, d transformsdk.Datum) string { return tag(keys, d.Value, d.Headers) }))
	}
	return opts
}

func (p *proxy) sinkOptions() []sinker.Option {
	denied := map[string]sinker.Action{
		actionNack: sinker.Nack(), actionDrop: sinker.Drop(), actionFail: sinker.Fail(), actionFallback: sinker.Fallback(),
	}
	opts := []sinker.Option{
		sinker.WithMaxWait(p.MaxWait), sinker.WithBatchBudget(p.BatchBudget), sinker.WithLogger(p.log), sinker.OnDenied(denied[p.action]),
	}
	if p.InOrder {
		opts = append(opts, sinker.InOrder())
	}
	if cost := p.rules.cost; cost != nil {
		opts = append(opts, sinker.WithCost(func(d sinksdk.Datum) int { return cost(d.Value, d.Headers) }))
	}
	if tag := p.rules.tag; tag != nil {
		opts = append(opts, sinker.WithTag(func(d sinksdk.Datum) string { return tag(d.Keys(), d.Value, d.Headers) }))
	}
	return opts
}

func (p *proxy) sourceOptions() []sourcer.Option {
	opts := []sourcer.Option{sourcer.WithTargetProcessing(p.TargetProcessing), sourcer.WithLogger(p.log)}
	if p.VertexRate > 0 {
		opts = append(opts, sourcer.WithVertexRate(float64(p.VertexRate)))
	}
	if cost := p.rules.cost; cost != nil {
		opts = append(opts, sourcer.WithReadCost(func(m sourcesdk.Message) int { return cost(m.Value, m.Headers) }))
	}
	return opts
}

// checkWrapper returns the faults that the kind's wrapper finds in its options. Settings that Validate accepts are valid for it; the
// variables of the container may not be.
func (p *proxy) checkWrapper() error {
	switch {
	case p.Kind == Source:
		return sourcer.Check(p.sourceOptions()...)
	case p.Kind == Transform:
		return sourcer.CheckTransformer(p.transformOptions()...)
	case p.Kind.isSink():
		return sinker.Check(p.sinkOptions()...)
	default:
		return mapper.Check(p.mapOptions()...)
	}
}
