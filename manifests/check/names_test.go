package check

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// nameFaults: what is referred to is there, and what is there is referred to.
func nameFaults(t *testing.T, b bundle) []string {
	t.Helper()
	r := references{configMaps: b.configMaps(t), secrets: b.secrets(t), used: map[string]bool{}}
	for _, p := range b.pods(t) {
		r.ofPod(p)
	}
	services := b.of("InterStepBufferService") // an example may do without: the cluster has one
	for _, d := range b.of("Pipeline") {
		if name := b.buffer(t, d); len(services) > 0 && !slices.ContainsFunc(services, func(s *document) bool { return s.name == name }) {
			r.faultf(d.String(), "there is no buffer service %s", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.configMaps)) {
		if !r.used[name] && b.name != monitoring && b.name != "chart-"+monitoring {
			r.faults = append(r.faults, "nobody uses ConfigMap "+name)
		}
	}
	return r.faults
}

// sockets is the volume that Numaflow gives every pod of its own.
const sockets = "var-run-numaflow"

// references follows names to what they name.
type references struct {
	configMaps map[string]map[string]string
	secrets    map[string][]string
	used       map[string]bool // ConfigMaps
	faults     []string
}

func (r *references) faultf(where, format string, args ...any) {
	r.faults = append(r.faults, where+": "+fmt.Sprintf(format, args...))
}

// configMap looks for a ConfigMap, and a key in it unless that is empty.
func (r *references) configMap(where, name, key string) {
	r.used[name] = true
	data, ok := r.configMaps[name]
	if !ok {
		r.faultf(where, "there is no ConfigMap %s", name)
	} else if _, ok := data[key]; key != "" && !ok {
		r.faultf(where, "ConfigMap %s has no key %s", name, key)
	}
}

// secret is the same for a Secret.
func (r *references) secret(where, name, key string) {
	keys, ok := r.secrets[name]
	if !ok {
		r.faultf(where, "nobody makes a Secret %s", name)
	} else if key != "" && !slices.Contains(keys, key) {
		r.faultf(where, "Secret %s has no key %s", name, key)
	}
}

func (r *references) ofPod(p *pod) {
	mounted := map[string]bool{}
	for i := range p.containers {
		c := &p.containers[i]
		where := fmt.Sprintf("%s, container %s", p, c.Name)
		r.ofVariables(where, c)
		for _, m := range c.VolumeMounts {
			mounted[m.Name] = true
			if m.Name == sockets && p.numaflow {
				continue
			}
			if !slices.ContainsFunc(p.volumes, func(v corev1.Volume) bool { return v.Name == m.Name }) {
				r.faultf(where, "there is no volume %s", m.Name)
			}
		}
	}
	for i := range p.volumes {
		v := &p.volumes[i]
		if !mounted[v.Name] {
			r.faultf(p.String(), "nobody mounts volume %s", v.Name)
		}
		if v.ConfigMap != nil {
			r.configMap(p.String(), v.ConfigMap.Name, "")
		}
		if v.Secret != nil {
			r.secret(p.String(), v.Secret.SecretName, "")
		}
	}
}

func (r *references) ofVariables(where string, c *container) {
	for _, from := range c.EnvFrom {
		switch {
		case from.ConfigMapRef != nil:
			r.configMap(where, from.ConfigMapRef.Name, "")
		case from.SecretRef != nil:
			r.secret(where, from.SecretRef.Name, "")
		}
	}
	for _, e := range c.Env {
		switch from := e.ValueFrom; {
		case from == nil:
		case from.ConfigMapKeyRef != nil:
			r.configMap(where, from.ConfigMapKeyRef.Name, from.ConfigMapKeyRef.Key)
		case from.SecretKeyRef != nil:
			r.secret(where, from.SecretKeyRef.Name, from.SecretKeyRef.Key)
		}
	}
}

// secrets are the keys of every Secret that there will be: those that Numaflow makes of a buffer service, and those that
// the user is told to make.
func (b bundle) secrets(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, d := range b.of("Pipeline") {
		all["isbsvc-"+b.buffer(t, d)+"-js-client-auth"] = []string{"client-auth-user", "client-auth-password"}
	}
	if len(b.of("Deployment")) > 0 { // of a console: the buffer is the namespace's
		all["isbsvc-default-js-client-auth"] = []string{"client-auth-user", "client-auth-password"}
	}
	joined := strings.ReplaceAll(b.page, "\\\n", " ")
	for _, m := range regexp.MustCompile(`kubectl create secret generic (\S+) (.*)`).FindAllStringSubmatch(joined, -1) {
		for _, key := range regexp.MustCompile(`--from-literal=([^=\s]+)=`).FindAllStringSubmatch(m[2], -1) {
			all[m[1]] = append(all[m[1]], key[1])
		}
	}
	return all
}

// buffer is the name of the buffer service of a pipeline.
func (b bundle) buffer(t *testing.T, pipeline *document) string {
	t.Helper()
	name := "default"
	pipeline.decode(t, &name, "spec", "interStepBufferServiceName")
	return name
}
