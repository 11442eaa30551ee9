// Package check validates the manifests and the chart. It contains only tests, in a module of its own: users of numathrottle never resolve
// the modules of Kubernetes and Prometheus.
//
// It renders every overlay as `kubectl apply -k` does, and the chart as `helm template` does. Resources of Numaflow are validated by their
// schemas, with no unknown field. Those of Kubernetes are decoded strictly. Each program runs with --check, with exactly the variables,
// files and Secrets of its container. The NATS and web servers accept their configurations. Dashboards and alerts use metrics that exist.
// Rules cover the rest: ports, security contexts, scale, network policies.
//
// The schemas are not part of the project: numaflow.numaproj.io_*.yaml of a Numaflow release, in ../shared/crds beside the project or in
// the folder NUMAFLOW_CRDS. Without them, Numaflow's resources are not validated.
package check
