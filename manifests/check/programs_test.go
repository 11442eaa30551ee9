package check

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
)

// prefixes begin the names of a program's own variables.
var prefixes = map[string]string{"llm-map": "LLM_MAP_", "http-sink": "HTTP_SINK_", "numathrottle": "NUMATHROTTLE_"}

// binaries is the folder of the programs, which build compiles on first use.
var binaries string

var build = sync.OnceValue(func() string {
	if out, err := exec.Command("bash", project+"/scripts/build.sh", binaries).CombinedOutput(); err != nil {
		panic(fmt.Sprintf("%v: %s", err, out))
	}
	return binaries
})

func TestMain(m *testing.M) {
	binaries = must(os.MkdirTemp("", "numathrottle-check-"))
	code := m.Run()
	_ = os.RemoveAll(binaries)
	os.Exit(code)
}

// A container's view of its settings: variables, and mounted files by path. The kubelet starts no container for which something is missing.
type view struct{ env, files map[string]string }

// texts returns everything that a program reads.
func (v view) texts() string {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(v.env)) {
		text.WriteString(name + "=" + v.env[name] + "\n")
	}
	for _, path := range slices.Sorted(maps.Keys(v.files)) {
		text.WriteString(v.files[path] + "\n")
	}
	return text.String()
}

// view collects what the kubelet and Numaflow give to a container.
func (r *report) view(b bundle, p *pod, c *corev1.Container, where string) view {
	data := b.data()
	look := func(kind, name, key string) string {
		keys, ok := data[kind+" "+name]
		if value, has := keys[key]; has {
			return value
		} else if ok {
			r.addf("%s: %s %s has no key %s", where, kind, name, key)
		} else {
			r.addf("%s: there is no %s %s", where, kind, name)
		}
		return ""
	}
	v := view{env: map[string]string{}, files: map[string]string{}}
	if p.raw != nil {
		v.env = map[string]string{"NUMAFLOW_NAMESPACE": "default", "NUMAFLOW_POD": "pod-0", "NUMAFLOW_REPLICA": "0"}
		if roles[c.Name] != "" {
			v.env["NUMAFLOW_UD_CONTAINER_TYPE"] = c.Name
		}
		if p.vertex != "" {
			v.env["NUMAFLOW_PIPELINE_NAME"], v.env["NUMAFLOW_VERTEX_NAME"] = p.owner.name, p.vertex
		} else {
			v.env["NUMAFLOW_MONO_VERTEX_NAME"] = p.owner.name
		}
	}
	for _, from := range c.EnvFrom {
		maps.Copy(v.env, data["ConfigMap "+from.ConfigMapRef.Name])
	}
	for _, e := range c.Env {
		switch from := e.ValueFrom; {
		case from == nil:
			v.env[e.Name] = e.Value
		case from.ConfigMapKeyRef != nil:
			v.env[e.Name] = look("ConfigMap", from.ConfigMapKeyRef.Name, from.ConfigMapKeyRef.Key)
		case from.SecretKeyRef != nil:
			v.env[e.Name] = look("Secret", from.SecretKeyRef.Name, from.SecretKeyRef.Key)
		default:
			v.env[e.Name] = "placeholder" // a field of the pod
		}
	}
	for _, m := range c.VolumeMounts {
		i := slices.IndexFunc(p.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name })
		if i < 0 {
			if p.raw == nil || m.Name != "var-run-numaflow" { // which Numaflow gives to every pod
				r.addf("%s: there is no volume %s", where, m.Name)
			}
			continue
		}
		from := ""
		if source := p.Spec.Volumes[i]; source.ConfigMap != nil {
			from = "ConfigMap " + source.ConfigMap.Name
		} else if source.Secret != nil {
			from = "Secret " + source.Secret.SecretName
		}
		if from != "" && data[from] == nil {
			r.addf("%s: there is no %s", where, from)
		}
		for key, text := range data[from] {
			v.files[filepath.Join(m.MountPath, key)] = text
		}
	}
	return v
}

// data returns the data of each ConfigMap and Secret of the bundle; of Secrets made by Numaflow or by the user, placeholders.
func (b bundle) data() map[string]map[string]string {
	all := map[string]map[string]string{}
	for _, d := range b.of("ConfigMap") {
		all["ConfigMap "+d.name] = d.node.GetDataMap()
	}
	login := map[string]string{"client-auth-user": "placeholder", "client-auth-password": "placeholder"}
	for _, p := range b.pods() {
		all["Secret isbsvc-"+p.buffer()+"-js-client-auth"] = login
	}
	for _, m := range regexp.MustCompile(`kubectl create secret generic (\S+) (.*)`).FindAllStringSubmatch(strings.ReplaceAll(b.page, "\\\n", " "), -1) {
		keys := map[string]string{}
		for _, key := range regexp.MustCompile(`--from-literal=([^=\s]+)=`).FindAllStringSubmatch(m[2], -1) {
			keys[key[1]] = "placeholder"
		}
		all["Secret "+m[1]] = keys
	}
	return all
}

// buffer returns the name of the buffer service of a pipeline; that of the namespace for others.
func (p *pod) buffer() string {
	name := "default"
	p.owner.decode(&name, "spec", "interStepBufferServiceName")
	return name
}

// settings: each program accepts its container's settings, and finds the files that they name.
func (r *report) settings(t *testing.T, b bundle) {
	t.Helper()
	b.each(func(p *pod, c *corev1.Container, where string) {
		program := program(c)
		v := r.view(b, p, c, where)
		if program == "" {
			return
		}
		for name := range v.env {
			if !strings.HasPrefix(name, "NUMA") && !strings.HasPrefix(name, prefixes[program]) {
				r.addf("%s: %s is no variable of %s", where, name, program)
			}
		}
		for _, m := range regexp.MustCompile(`(?m)^(\w+(?:_FILE|File)|NUMATHROTTLE_CONFIG)(?:=|: *)(\S+)$`).FindAllStringSubmatch(v.texts(), -1) {
			if _, ok := v.files[m[2]]; !ok {
				r.addf("%s: %s is %s, where no file is mounted", where, m[1], m[2])
			}
		}
		if program == "numathrottle" && (len(c.Args) == 0 || c.Args[0] != "proxy") {
			return // it has no --check
		}
		// The files are below a folder of the test, under the same paths.
		root := t.TempDir()
		var moves []string
		for _, m := range c.VolumeMounts {
			moves = append(moves, m.MountPath+"/", root+m.MountPath+"/")
		}
		move := strings.NewReplacer(moves...)
		for path, text := range v.files {
			if err := os.MkdirAll(filepath.Dir(root+path), 0o755); err != nil {
				panic(err)
			}
			if err := os.WriteFile(root+path, []byte(move.Replace(text)), 0o600); err != nil {
				panic(err)
			}
		}
		cmd := exec.CommandContext(t.Context(), filepath.Join(build(), program), append(slices.Clone(c.Args), "--check")...)
		for name, value := range v.env {
			cmd.Env = append(cmd.Env, name+"="+move.Replace(value))
		}
		out, err := cmd.CombinedOutput()
		if err != nil {
			r.addf("%s: %s --check: %v: %s", where, program, err, strings.ReplaceAll(string(out), root, ""))
			return
		}
		if store := regexp.MustCompile(`\bstore: \S+`).FindString(string(out)); store == "" || strings.Contains(store, "memory://") {
			r.addf("%s: it has no store: every pod would use the whole limit", where)
		}
		r.hint(p, string(out))
		var ports, health string
		for _, port := range c.Ports {
			ports += fmt.Sprintf(":%d", port.ContainerPort)
		}
		if m := regexp.MustCompile(`healthAddr: "?(:\d+)`).FindStringSubmatch(string(out)); m != nil {
			health = m[1]
		}
		if ports != health {
			r.addf("%s: healthAddr is %q, and the ports of the container are %q", where, health, ports)
		}
	})
}

// called returns the URLs that a pod calls: the stores and the services of its programs, and the brokers of its source.
func (b bundle) called(p *pod) (all []string) {
	for _, c := range p.containers() {
		if program(&c) == "llm-map" {
			all = append(all, "https://api.openai.com") // the default
		}
		const keys = "NUMATHROTTLE_STORE=|NUMATHROTTLE_PROXY_UPSTREAM=|HTTP_SINK_URL=|url: |store: "
		for _, m := range regexp.MustCompile(`(?m)^(?:`+keys+`)(\S+)`).FindAllStringSubmatch((&report{}).view(b, p, &c, "").texts(), -1) {
			all = append(all, m[1])
			if strings.HasPrefix(m[1], "redis+sentinel:") {
				all = append(all, "redis://redis:6379") // the master that they name
			}
		}
	}
	if p.raw != nil {
		if brokers := must(p.raw.Pipe(kyaml.Lookup("source", "kafka", "brokers"))); brokers != nil {
			for _, name := range must(brokers.Elements()) {
				all = append(all, "kafka://"+name.YNode().Value)
			}
		}
		if p.vertex != "" {
			all = append(all, "nats://isbsvc-"+p.buffer()+"-js-svc:4222")
		}
	}
	return all
}
