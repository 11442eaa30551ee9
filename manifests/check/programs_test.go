package check

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// prefixes are what the names of a program's own variables begin with.
var prefixes = map[string]string{"llm-map": "LLM_MAP_", "http-sink": "HTTP_SINK_", "numathrottle": "NUMATHROTTLE_"}

// binaries is the folder of the programs whose images the bundles name.
var binaries string

// built makes the programs, once they are asked for.
var built = sync.OnceValue(func() error {
	args := []string{"build", "-o", binaries + "/"}
	for program := range prefixes {
		args = append(args, source(program))
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = project
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
})

// build returns the folder with the programs.
func build(t *testing.T) string {
	t.Helper()
	require.NoError(t, built())
	return binaries
}

func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "numathrottle-check-")
	if err != nil {
		panic(err)
	}
	binaries = folder
	code := m.Run()
	_ = os.RemoveAll(folder)
	os.Exit(code)
}

// Every program accepts what its containers give it: each variable, each key of a file and each value is one that it reads.
func TestProgramsAcceptTheirSettings(t *testing.T) {
	programs := build(t)
	for _, b := range slices.Concat(overlays(t), examples(t)) {
		t.Run(b.name, func(t *testing.T) { require.Empty(t, settingFaults(t, b, programs)) })
	}
}

// settingFaults runs each container's program with --check.
func settingFaults(t *testing.T, b bundle, programs string) []string {
	t.Helper()
	return eachContainer(t, b, func(p *pod, c *container) []string {
		program := c.program()
		if program == "" || program == "numathrottle" && (len(c.Args) == 0 || c.Args[0] != "proxy") {
			return nil // no program of the project, or one without settings
		}
		root := t.TempDir()
		m := mount(t, b, p, c, root)
		env, found := m.environment(t, b, p, c)
		for _, entry := range env {
			if name, value, _ := strings.Cut(entry, "="); strings.HasPrefix(value, root) && !m.exists(value) {
				found = append(found, fmt.Sprintf("%s is %s, which nothing is mounted at", name, strings.TrimPrefix(value, root)))
			}
		}
		cmd := exec.CommandContext(t.Context(), filepath.Join(programs, program), append(slices.Clone(c.Args), "--check")...)
		cmd.Env = env
		out, err := cmd.CombinedOutput()
		if err != nil {
			return append(found, fmt.Sprintf("%s --check: %v: %s", program, err, strings.ReplaceAll(string(out), root, "")))
		}
		if store := regexp.MustCompile(`\bstore: \S+`).FindString(string(out)); store == "" || strings.Contains(store, "memory://") {
			found = append(found, "it has no store: every pod would use the whole limit")
		}
		if port := regexp.MustCompile(`healthAddr: "?:(\d+)`).FindStringSubmatch(string(out)); port != nil {
			if !slices.ContainsFunc(c.Ports, func(has corev1.ContainerPort) bool { return fmt.Sprint(has.ContainerPort) == port[1] }) {
				found = append(found, "healthAddr is :"+port[1]+", which is no port of the container")
			}
		} else if len(c.Ports) > 0 {
			found = append(found, "it has a port, but no healthAddr")
		}
		return found
	})
}

// A root is what a container sees of its volumes, below a folder of the test's.
type rootFolder struct {
	folder string
	move   *strings.Replacer // paths in the container to paths on this machine
}

// mount lays out the files of a container.
func mount(t *testing.T, b bundle, p *pod, c *container, folder string) rootFolder {
	t.Helper()
	var pairs []string
	for _, m := range c.VolumeMounts {
		pairs = append(pairs, m.MountPath+"/", folder+m.MountPath+"/")
	}
	r := rootFolder{folder, strings.NewReplacer(pairs...)}
	configMaps, secrets := b.configMaps(t), b.secrets(t)
	for _, m := range c.VolumeMounts {
		at := filepath.Join(folder, m.MountPath)
		require.NoError(t, os.MkdirAll(at, 0o755))
		for _, v := range p.volumes {
			switch {
			case v.Name != m.Name:
			case v.ConfigMap != nil:
				for key, text := range configMaps[v.ConfigMap.Name] {
					require.NoError(t, os.WriteFile(filepath.Join(at, key), []byte(r.move.Replace(text)), 0o600))
				}
			case v.Secret != nil:
				for _, key := range secrets[v.Secret.SecretName] {
					require.NoError(t, os.WriteFile(filepath.Join(at, key), []byte("placeholder"), 0o600))
				}
			}
		}
	}
	return r
}

func (r rootFolder) exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// environment is what the kubelet sets, a container's own variables last.
func (r rootFolder) environment(t *testing.T, b bundle, p *pod, c *container) (env, found []string) {
	t.Helper()
	set := map[string]string{
		"NUMAFLOW_NAMESPACE": "default", "NUMAFLOW_POD": "pod-0", "NUMAFLOW_REPLICA": "0", "NUMAFLOW_UD_CONTAINER_TYPE": c.role,
	}
	if p.vertex != "" {
		set["NUMAFLOW_PIPELINE_NAME"], set["NUMAFLOW_VERTEX_NAME"] = p.owner.name, p.vertex
	} else {
		set["NUMAFLOW_MONO_VERTEX_NAME"] = p.owner.name
	}
	add := func(name, value string) {
		if !strings.HasPrefix(name, "NUMATHROTTLE_") && !strings.HasPrefix(name, prefixes[c.program()]) {
			found = append(found, name+" is no variable of "+c.program())
		}
		set[name] = r.move.Replace(value)
	}
	configMaps := b.configMaps(t)
	for _, from := range c.EnvFrom {
		if from.ConfigMapRef != nil {
			for name, value := range configMaps[from.ConfigMapRef.Name] {
				add(from.Prefix+name, value)
			}
		}
	}
	for _, e := range c.Env {
		switch from := e.ValueFrom; {
		case from == nil:
			add(e.Name, e.Value)
		case from.ConfigMapKeyRef != nil:
			add(e.Name, configMaps[from.ConfigMapKeyRef.Name][from.ConfigMapKeyRef.Key])
		default:
			add(e.Name, "placeholder")
		}
	}
	for name, value := range set {
		env = append(env, name+"="+value)
	}
	slices.Sort(env)
	return env, found
}

// Files that a setting of a file names are there, too: a program reads some of them only when it connects.
func TestFilesOfSettingsAreMounted(t *testing.T) {
	for _, b := range slices.Concat(overlays(t), examples(t)) {
		require.Empty(t, eachContainer(t, b, func(p *pod, c *container) []string { return fileFaults(t, b, p, c) }), b.name)
	}
}

func fileFaults(t *testing.T, b bundle, p *pod, c *container) []string {
	t.Helper()
	if c.program() == "" {
		return nil
	}
	root := t.TempDir()
	r := mount(t, b, p, c, root)
	var found []string
	require.NoError(t, filepath.WalkDir(root, func(path string, e os.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".yaml" {
			return err
		}
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		values := map[string]any{}
		require.NoError(t, yaml.Unmarshal(text, &values), path)
		for key, value := range values {
			file := fmt.Sprint(value)
			if strings.HasSuffix(key, "File") && (!strings.HasPrefix(file, root) || !r.exists(file)) {
				found = append(found, fmt.Sprintf("%s is %s, which nothing is mounted at", key, strings.TrimPrefix(file, root)))
			}
		}
		return nil
	}))
	return found
}
