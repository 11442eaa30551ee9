{{- define "numathrottle.name" -}}
{{- .Values.name | default .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "numathrottle.labels" -}}
app.kubernetes.io/name: {{ include "numathrottle.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/part-of: numathrottle
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- with .Values.labels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- /* The labels by which the pods of all throttled vertices are found: Numaflow sets them. */ -}}
{{- define "numathrottle.podLabels" -}}
{{- if eq .Values.kind "MonoVertex" -}}
app.kubernetes.io/component: mono-vertex
numaflow.numaproj.io/mono-vertex-name: {{ include "numathrottle.name" . }}
{{- else -}}
app.kubernetes.io/component: vertex
numaflow.numaproj.io/pipeline-name: {{ include "numathrottle.name" . }}
{{- end -}}
{{- end -}}

{{- define "numathrottle.image" -}}
image: {{ printf "%s/numathrottle-%s:%s" .root.Values.image.registry .program (.root.Values.image.tag | default .root.Chart.AppVersion) }}
{{- with .root.Values.image.pullPolicy }}
imagePullPolicy: {{ . }}
{{- end }}
{{- end -}}

{{- /* The URL of the store. */ -}}
{{- define "numathrottle.store" -}}
{{- $store := .Values.store -}}
{{- if $store.url -}}
{{ $store.url }}
{{- else if eq $store.type "jetstream" -}}
{{ printf "nats://isbsvc-%s-js-svc:4222" .Values.interStepBuffer.name }}
{{- else if eq $store.type "redis" -}}
redis://redis:6379
{{- else if eq $store.type "sentinel" -}}
redis+sentinel://redis-sentinel:26379/mymaster
{{- else if eq $store.type "nats" -}}
{{ printf "nats://%s-nats:4222" (include "numathrottle.name" .) }}
{{- else -}}
{{ fail "store.url is empty: with store.type url it names the store" }}
{{- end -}}
{{- end -}}

{{- /* The Secret with the login; empty for none. */ -}}
{{- define "numathrottle.storeSecret" -}}
{{- $type := .Values.store.type -}}
{{- if .Values.store.secret -}}
{{ .Values.store.secret }}
{{- else if eq $type "jetstream" -}}
{{ printf "isbsvc-%s-js-client-auth" .Values.interStepBuffer.name }}
{{- else if has $type (list "redis" "sentinel") -}}
redis
{{- else if eq $type "nats" -}}
throttle-nats
{{- end -}}
{{- end -}}

{{- /* "true" when the login is mounted as files, which are read anew for each connection. */ -}}
{{- define "numathrottle.storeFiles" -}}
{{- if has .Values.store.type (list "redis" "sentinel") -}}true{{- end -}}
{{- end -}}

{{- /* The pods of the store, by their labels, and their ports; without labels it is outside of the cluster. */ -}}
{{- define "numathrottle.storePeer" -}}
{{- $type := .Values.store.type -}}
{{- $labels := dict "app.kubernetes.io/name" "redis" -}}
{{- $ports := list 6379 -}}
{{- if eq $type "jetstream" -}}
{{- $labels = dict "app.kubernetes.io/component" "isbsvc" "numaflow.numaproj.io/isbsvc-name" .Values.interStepBuffer.name -}}
{{- $ports = list 4222 -}}
{{- else if eq $type "sentinel" -}}
{{- $ports = list 6379 26379 -}}
{{- else if eq $type "url" -}}
{{- $labels = .Values.store.podLabels -}}
{{- $ports = list .Values.store.port -}}
{{- else if eq $type "nats" -}}
{{- $labels = dict "app.kubernetes.io/name" (printf "%s-nats" (include "numathrottle.name" .)) -}}
{{- $ports = list 4222 -}}
{{- end -}}
labels:
  {{- toYaml $labels | nindent 2 }}
ports:
  {{- range $ports }}
  - {protocol: TCP, port: {{ . }}}
  {{- end }}
{{- end -}}

{{- define "numathrottle.storeEnv" -}}
{{- $secret := include "numathrottle.storeSecret" . -}}
{{- if and $secret (not (include "numathrottle.storeFiles" .)) -}}
{{- $jetstream := eq .Values.store.type "jetstream" -}}
- name: NUMATHROTTLE_STORE_USERNAME
  valueFrom: {secretKeyRef: {name: {{ $secret }}, key: {{ ternary "client-auth-user" "username" $jetstream }}}}
- name: NUMATHROTTLE_STORE_PASSWORD
  valueFrom: {secretKeyRef: {name: {{ $secret }}, key: {{ ternary "client-auth-password" "password" $jetstream }}}}
{{- end -}}
{{- end -}}

{{- /* The data of the ConfigMap that all programs share. */ -}}
{{- define "numathrottle.shared" -}}
NUMATHROTTLE_STORE: {{ include "numathrottle.store" . }}
{{- if ne .Values.kind "MonoVertex" }}
NUMATHROTTLE_HEALTH_ADDR: ":8085"
{{- end }}
{{- if include "numathrottle.storeFiles" . }}
NUMATHROTTLE_STORE_PASSWORD_FILE: /var/run/secrets/redis/password
{{- end }}
{{- if eq .Values.store.type "sentinel" }}
NUMATHROTTLE_STORE_SENTINEL_PASSWORD_FILE: /var/run/secrets/redis/sentinel-password
{{- end }}
{{- end -}}

{{- /* The settings of a program. In a MonoVertex both have the same default pool and ID, so each gets a pool and a port of its own. */ -}}
{{- define "numathrottle.config" -}}
{{- $config := deepCopy .config -}}
{{- if .quotas -}}
{{- $config = mergeOverwrite $config (dict "quotas" .quotas) -}}
{{- end -}}
{{- if eq .root.Values.kind "MonoVertex" -}}
{{- $pool := printf "%s/%s" (include "numathrottle.name" .root) .part -}}
{{- $config = mergeOverwrite (dict "pool" $pool "healthAddr" (printf ":%v" .port)) $config -}}
{{- end -}}
{{- toYaml $config -}}
{{- end -}}

{{- define "numathrottle.askConfig" -}}
{{- include "numathrottle.config" (dict "root" . "config" .Values.llmMap.config "quotas" .Values.llmMap.quotas "part" "ask" "port" 8085) -}}
{{- end -}}

{{- define "numathrottle.deliverConfig" -}}
{{- include "numathrottle.config" (dict "root" . "config" .Values.httpSink.config "quotas" .Values.httpSink.quotas "part" "deliver" "port" 8086) -}}
{{- end -}}

{{- /* Names of ConfigMaps end in a hash of what they hold, so that a change rolls the pods. */ -}}
{{- define "numathrottle.mapName" -}}
{{- printf "%s-%s-%s" (include "numathrottle.name" .root) .part (include .of .root | sha256sum | trunc 8) -}}
{{- end -}}
{{- define "numathrottle.askMap" -}}
{{- include "numathrottle.mapName" (dict "root" . "part" "ask" "of" "numathrottle.askConfig") -}}
{{- end -}}
{{- define "numathrottle.deliverMap" -}}
{{- include "numathrottle.mapName" (dict "root" . "part" "deliver" "of" "numathrottle.deliverConfig") -}}
{{- end -}}
{{- define "numathrottle.sharedMap" -}}
{{- include "numathrottle.mapName" (dict "root" . "part" "throttle" "of" "numathrottle.shared") -}}
{{- end -}}

{{- /* What the pods of a vertex have in common. */ -}}
{{- define "numathrottle.podSpec" -}}
{{- if .Values.monitoring.annotations }}
metadata:
  annotations:
    prometheus.io/scrape: "true"
    prometheus.io/port: "8085"
{{- end }}
# Nothing in these pods talks to the API server.
automountServiceAccountToken: false
securityContext:
  seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- /* A container of one of the programs: root, program, file (the volume with its settings), secret, secretName, port, portName, env, resources. */ -}}
{{- define "numathrottle.container" -}}
{{ include "numathrottle.image" . }}
envFrom:
  - configMapRef: {name: {{ include "numathrottle.sharedMap" .root }}}
env:
  - name: NUMATHROTTLE_CONFIG
    value: /etc/numathrottle/config.yaml
  {{- with include "numathrottle.storeEnv" .root }}
  {{- . | nindent 2 }}
  {{- end }}
  {{- with .env }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
volumeMounts:
  - {name: {{ .file }}, mountPath: /etc/numathrottle, readOnly: true}
  {{- if .secretName }}
  - {name: {{ .secret }}, mountPath: /var/run/secrets/{{ .secret }}, readOnly: true}
  {{- end }}
  {{- if include "numathrottle.storeFiles" .root }}
  - {name: redis, mountPath: /var/run/secrets/redis, readOnly: true}
  {{- end }}
ports:
  # /healthz, /readyz, /metrics and /statusz.
  - {name: {{ .portName }}, containerPort: {{ .port }}}
# Numaflow probes a user container by its own /sidecar-livez; only the times can be set.
livenessProbe:
  initialDelaySeconds: 20
  periodSeconds: 20
  timeoutSeconds: 10
  failureThreshold: 3
resources:
  {{- toYaml .resources | nindent 2 }}
# The program writes to nothing but its socket, in a volume that Numaflow mounts.
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
  seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- /* The hint for Numaflow's autoscaler: 98 % of the messages that the limit lets through in a second, rounded up. Empty: the scale is fixed. */ -}}
{{- define "numathrottle.rateMax" -}}
{{- $ask := .Values.llmMap -}}
{{- $second := $ask.messagesPerSecond | default (divf (toString ($ask.config.requestsPerMinute | default 0) | float64) 60) | float64 -}}
{{- if and (gt $second 0.0) (lt (int $ask.minReplicas) (int $ask.replicas)) -}}
{{- mulf 0.98 $second | ceil | int -}}
{{- end -}}
{{- end -}}

{{- define "numathrottle.ask" -}}
{{- include "numathrottle.container" (dict "root" .root "program" "llm-map" "file" .file "secret" "llm" "secretName" .root.Values.llmMap.secret
  "port" 8085 "portName" "health" "env" .root.Values.llmMap.env "resources" .root.Values.llmMap.resources) -}}
{{- end -}}

{{- define "numathrottle.deliver" -}}
{{- include "numathrottle.container" (dict "root" .root "program" "http-sink" "file" .file "secret" "ingest" "secretName" .root.Values.httpSink.secret
  "port" .port "portName" .portName "env" .root.Values.httpSink.env "resources" .root.Values.httpSink.resources) -}}
{{- end -}}

{{- define "numathrottle.secretVolume" -}}
{{- if .secretName }}
- name: {{ .secret }}
  secret: {secretName: {{ .secretName }}}
{{- end }}
{{- end -}}

{{- define "numathrottle.storeVolume" -}}
{{- if include "numathrottle.storeFiles" . }}
- name: redis
  secret: {secretName: {{ include "numathrottle.storeSecret" . }}}
{{- end }}
{{- end -}}

{{- /* Fails where a value is a secret, or holds one, by the name of its key or by its form. */ -}}
{{- define "numathrottle.noSecrets" -}}
{{- $at := .at -}}
{{- $instead := "which would stand in a ConfigMap: put it into a Secret, and name its file here, or its variable under env" -}}
{{- if kindIs "map" .value -}}
{{- range $key, $value := .value -}}
{{- include "numathrottle.noSecrets" (dict "at" (printf "%s.%s" $at $key) "key" $key "value" $value) -}}
{{- end -}}
{{- else if kindIs "slice" .value -}}
{{- range $value := .value -}}
{{- include "numathrottle.noSecrets" (dict "at" $at "key" "" "value" $value) -}}
{{- end -}}
{{- else if .value -}}
{{- $text := toString .value -}}
{{- if regexMatch "(?i)(password|token|secret|credentials|(api|secret|signature|private)[-_]?key)$|^(proxy-)?authorization$|^cookie$" .key -}}
{{- fail (printf "%s is a secret, %s" $at $instead) -}}
{{- end -}}
{{- if regexMatch "://[^/?# ]*@" $text -}}
{{- fail (printf "%s is a URL with a login, %s" $at $instead) -}}
{{- end -}}
{{- if regexMatch "(?i)[?&](key|sig|signature|password|[a-z_-]*(token|secret|api[-_]?key))=[^{&]" $text -}}
{{- fail (printf "%s is a URL with a secret in its query, %s" $at $instead) -}}
{{- end -}}
{{- if regexMatch "(?im)(^|[,;])[ ]*((proxy-)?authorization|cookie|[a-z-]*(token|secret|api-?key))[ ]*:" $text -}}
{{- fail (printf "%s has a header with a secret, %s" $at $instead) -}}
{{- end -}}
{{- end -}}
{{- end -}}
