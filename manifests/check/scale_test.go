package check

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
)

// number returns a number in the spec of the vertex; 0 if there is none.
func (p *pod) number(path ...string) int {
	if node := must(p.raw.Pipe(kyaml.Lookup(path...))); node != nil {
		return must(strconv.Atoi(node.YNode().Value))
	}
	return 0
}

// has reports whether the spec of the vertex has a field.
func (p *pod) has(path ...string) bool { return must(p.raw.Pipe(kyaml.Lookup(path...))) != nil }

// disabled reports whether Numaflow's autoscaler leaves the vertex alone.
func (p *pod) disabled() bool {
	node := must(p.raw.Pipe(kyaml.Lookup("scale", "disabled")))
	return node != nil && node.YNode().Value == "true"
}

// A scaledObject is the part of KEDA's resource that is used here. It is decoded strictly.
type scaledObject struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   metav1.ObjectMeta `json:"metadata"`
	Spec       struct {
		ScaleTargetRef  autoscalingv2.CrossVersionObjectReference `json:"scaleTargetRef"`
		MinReplicaCount int                                       `json:"minReplicaCount"`
		MaxReplicaCount int                                       `json:"maxReplicaCount"`
		Triggers        []struct {
			Type     string            `json:"type"`
			Metadata map[string]string `json:"metadata"`
		} `json:"triggers"`
	} `json:"spec"`
}

// scaled reports whether an autoscaler of the bundle scales the vertex.
func (b bundle) scaled(p *pod) bool {
	return slices.ContainsFunc(slices.Concat(b.of("ScaledObject"), b.of("HorizontalPodAutoscaler")), func(d *document) bool {
		var target autoscalingv2.CrossVersionObjectReference
		d.decode(&target, "spec", "scaleTargetRef")
		return target.APIVersion == p.owner.node.GetApiVersion() && target.Kind == "Vertex" && target.Name == p.owner.name+"-"+p.vertex
	})
}

// scalers: an autoscaler scales an existing vertex by an existing metric of its pool, from one pod on.
func (r *report) scalers(b bundle) {
	pools := map[string]bool{}
	for _, d := range b.of("ConfigMap") {
		pools[d.node.GetDataMap()["NUMATHROTTLE_POOL"]] = true
	}
	check := func(d *document, least int, query string) {
		if least < 1 {
			r.addf("%s: at least %d pods: without one nothing is measured", d, least)
		}
		if !slices.ContainsFunc(b.pods(), func(p *pod) bool { return p.raw != nil && p.disabled() && b.scaled(p) }) {
			r.addf("%s: it scales no vertex whose own autoscaler is off", d)
		}
		for _, fault := range documented().faults(query) {
			r.addf("%s: %s", d, fault)
		}
		if m := regexp.MustCompile(`limit="([^"]*)"`).FindStringSubmatch(query); m == nil || !pools[m[1]] {
			r.addf("%s: %s is about no pool of the pods", d, query)
		}
	}
	for _, d := range b.of("ScaledObject") {
		var o scaledObject
		d.decode(&o)
		for _, t := range o.Spec.Triggers {
			check(d, o.Spec.MinReplicaCount, t.Metadata["query"])
			if t.Type != "prometheus" || t.Metadata["threshold"] != "1" || t.Metadata["ignoreNullValues"] != "false" {
				r.addf("%s: a trigger is not of type prometheus, with threshold 1 and ignoreNullValues false", d)
			}
		}
	}
	for _, d := range b.of("HorizontalPodAutoscaler") {
		var h autoscalingv2.HorizontalPodAutoscaler
		d.decode(&h)
		for i := range h.Spec.Metrics {
			m := h.Spec.Metrics[i].External
			check(d, int(*h.Spec.MinReplicas), fmt.Sprintf("sum(%s{limit=%q})", m.Metric.Name, m.Metric.Selector.MatchLabels["limit"]))
			if m.Target.Type != autoscalingv2.AverageValueMetricType || m.Target.AverageValue.Value() != 1 {
				r.addf("%s: the target is not an AverageValue of 1", d)
			}
		}
	}
}

// scale: a throttled vertex has a fixed scale, or Numaflow's autoscaler knows its limit; and it has room for waiting messages.
func (r *report) scale(b bundle) {
	for _, p := range b.pods() {
		if p.raw == nil || len(p.containers()) == 0 {
			continue
		}
		isMap := p.vertex != "" && p.has("udf")
		hint := p.number("limits", "rateLimit", "max")
		low, high := p.number("scale", "min"), p.number("scale", "max")
		switch {
		case p.disabled():
			if !b.scaled(p) {
				r.addf("%s: Numaflow's autoscaler is off, and no other scales it", p)
			}
		case hint == 0 && (low == 0 || low != high):
			r.addf("%s: the scale is %d to %d, not fixed, and no limits.rateLimit.max stops the autoscaler", p, low, high)
		case high < 1:
			r.addf("%s: there is no scale.max", p)
		}
		if p.has("limits", "rateLimit") {
			switch {
			case !isMap:
				r.addf("%s: a rateLimit of Numaflow's own: outside a map vertex of a pipeline it holds messages back", p)
			case !p.has("limits", "rateLimit", "store", "inMemoryStore"):
				r.addf("%s: limits.rateLimit has no store.inMemoryStore: without a store it stops Numaflow's controller, and Redis shares it", p)
			}
		}
		batch, room := p.number("limits", "readBatchSize"), p.number("limits", "concurrency")
		if batch == 0 || isMap && room < 4*batch {
			r.addf("%s: readBatchSize is %d, and concurrency %d is below 4 x readBatchSize", p, batch, room)
		}
	}
}

var limits = regexp.MustCompile(`(?m)^(max|\w*[rR]equestsPerMinute): "?([0-9]+)`)

// hint: limits.rateLimit.max of the vertex is 98 % of what a program's limit lets through in a second, rounded up. settings are those that
// the program prints; without requests per minute its limit is max per second.
func (r *report) hint(p *pod, settings string) {
	if p.raw == nil || !p.has("limits", "rateLimit") {
		return
	}
	second := 0.0
	for _, m := range limits.FindAllStringSubmatch(settings, -1) {
		switch figure := must(strconv.ParseFloat(m[2], 64)); {
		case m[1] != "max":
			second = figure / 60
		case second == 0:
			second = figure
		}
	}
	if has, want := p.number("limits", "rateLimit", "max"), int(math.Ceil(0.98*second)); has != want {
		r.addf("%s: limits.rateLimit.max is %d, and 98 %% of the limit is %d", p, has, want)
	}
}
