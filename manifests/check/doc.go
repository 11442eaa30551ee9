// Package check validates the manifests beside it. It holds tests only, in a module of its own, so that
// nobody who uses numathrottle resolves the modules of Kubernetes and Prometheus.
//
// Every overlay is rendered as `kubectl apply -k` would, and every document is held against what will read it: Numaflow's
// resources against the schema of their definitions, with no unknown field; those of Kubernetes against its types, decoded
// strictly; each container's variables, files and secrets by running the container's program with --check on
// exactly them; the NATS server's configuration by starting a server with it; dashboards and alerts against the metrics that
// there are. What no schema says is checked by rules: ports, security contexts, scale, names that refer to something.
//
// The definitions are not part of the project. They are looked for in ../shared/crds beside it, or where NUMAFLOW_CRDS
// says, as the files numaflow.numaproj.io_*.yaml of Numaflow's releases; without them what needs them is
// skipped.
package check
