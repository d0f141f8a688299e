{{/*
Parts that several objects share. A program is a dict of these fields, made by its own file:
  root      the chart's context
  name      of the program, its component label and its objects
  values    its section of values.yaml: replicas, resources
  command   words of its command line
  graceS    seconds that a pod has to end
  secrets   keys of .Values.secrets that its process gets, in addition to the config map
  port      variable with the port of its HTTP server, if it has one
  metrics   true if it serves metrics
  account   service account, if it calls the cluster's API
  migrated  true if it waits until rows are migrated
  static    true if it needs the collected static files
  claimed   true if its own files are on a claim of its StatefulSet
  env, mounts, volumes: what it needs besides
*/}}

{{- define "penstock.labels" -}}
{app.kubernetes.io/name: penstock, app.kubernetes.io/component: {{ . }}}
{{- end }}

{{- define "penstock.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* Variables of every process. A lake in S3 replaces the default store. */}}
{{- define "penstock.config" -}}
{{- $lakes := dict }}
{{- if eq .Values.lake.store "s3" }}
{{- $lakes = dict "PENSTOCK_LAKES" .Values.lake.url }}
{{- end }}
{{- merge $lakes .Values.config | toYaml }}
{{- end }}

{{/* Pods of a changed configuration are replaced, because this annotation of theirs changes. */}}
{{- define "penstock.configHash" -}}
{{ include "penstock.config" . | sha256sum }}
{{- end }}

{{- define "penstock.envFrom" -}}
- configMapRef: {name: penstock}
{{- range $key := .secrets }}
- secretRef: {name: {{ index $.root.Values.secrets $key }}{{ if eq $key "web" }}, optional: true{{ end }}}
{{- end }}
{{- end }}

{{/* Of pods whose process calls S3. */}}
{{- define "penstock.lakeSecret" -}}
{{- if and (eq .Values.lake.store "s3") .Values.lake.credentialsSecret }}
- secretRef: {name: {{ .Values.lake.credentialsSecret }}}
{{- end }}
{{- end }}

{{- define "penstock.podSecurity" -}}
{runAsNonRoot: true, runAsUser: 1000, fsGroup: 1000, seccompProfile: {type: RuntimeDefault}}
{{- end }}

{{- define "penstock.containerSecurity" -}}
{allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
{{- end }}

{{/* If a zone fails, the others take its pods. */}}
{{- define "penstock.spread" -}}
- maxSkew: 1
  topologyKey: topology.kubernetes.io/zone
  whenUnsatisfiable: ScheduleAnyway
  labelSelector: {matchLabels: {{ include "penstock.labels" . }}}
{{- end }}

{{- define "penstock.pullSecrets" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "penstock.ownMounts" -}}
- {name: var, mountPath: /var/penstock}
- {name: tmp, mountPath: /tmp}
{{- end }}

{{- define "penstock.ownVolumes" -}}
- {name: var, emptyDir: {}}
- {name: tmp, emptyDir: {}}
{{- end }}

{{- define "penstock.sharedVolume" -}}
{name: shared, persistentVolumeClaim: {claimName: {{ .Values.shared.existingClaim | default "shared" }}}}
{{- end }}

{{/* Checkpoints of a cell's queries are shared by its driver and executors; the lake, too, unless it is in S3. */}}
{{- define "penstock.cellMounts" -}}
- {name: shared, mountPath: /var/penstock/data/checkpoints, subPath: checkpoints}
{{- if eq .Values.lake.store "shared" }}
- {name: shared, mountPath: /var/penstock/lake, subPath: lake}
{{- end }}
{{- end }}

{{/* A step before a program starts; `.command` holds its words. */}}
{{- define "penstock.initContainer" -}}
- name: {{ .step }}
  image: {{ include "penstock.image" .root }}
  command: {{ toJson .command }}
  envFrom: {{- include "penstock.envFrom" (dict "root" .root "secrets" (list "data" "control")) | nindent 4 }}
  resources: {requests: {cpu: 250m, memory: 256Mi}, limits: {memory: 1Gi}}
  securityContext: {{ include "penstock.containerSecurity" . }}
  volumeMounts: {{- include "penstock.ownMounts" . | nindent 4 }}
    {{- with .mounts }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end }}

{{- define "penstock.probes" -}}
startupProbe:
  httpGet: {path: /livez, port: http}
  periodSeconds: 2
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /livez, port: http}
  timeoutSeconds: 5
readinessProbe:
  httpGet: {path: /readyz, port: http}
  periodSeconds: 3
  timeoutSeconds: 5
lifecycle: {preStop: {exec: {command: [sleep, "5"]}}} # until no Service routes requests to this pod
{{- end }}

{{/* The probe of a program whose only port is that of its metrics. */}}
{{- define "penstock.metricsProbe" -}}
readinessProbe:
  httpGet: {path: /metrics, port: metrics}
  timeoutSeconds: 5
{{- end }}

{{/* The pod template of a program. */}}
{{- define "penstock.pod" -}}
{{- $root := .root -}}
metadata:
  labels: {{ include "penstock.labels" .name }}
  annotations: {checksum/config: {{ include "penstock.configHash" $root }}}
spec:
  {{- with .account }}
  serviceAccountName: {{ . }}
  {{- end }}
  automountServiceAccountToken: {{ not (empty .account) }}
  terminationGracePeriodSeconds: {{ .graceS }}
  securityContext: {{ include "penstock.podSecurity" . }}
  {{- include "penstock.pullSecrets" $root | nindent 2 }}
  topologySpreadConstraints: {{- include "penstock.spread" .name | nindent 4 }}
  {{- if .migrated }}
  initContainers: # the first fails, and is retried, until the Job setup has finished
    {{- include "penstock.initContainer" (dict "root" $root "step" "rows-are-migrated" "command" (list "python" "manage.py" "migrate" "--check")) | nindent 4 }}
    {{- if .static }}
    {{- include "penstock.initContainer" (dict "root" $root "step" "static" "command" (list "python" "manage.py" "collectstatic" "--noinput")) | nindent 4 }}
    {{- end }}
  {{- end }}
  containers:
    - name: {{ .name }}
      image: {{ include "penstock.image" $root }}
      command: {{ toJson .command }}
      envFrom: {{- include "penstock.envFrom" . | nindent 8 }}
      {{- with .env }}
      env: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- if or .port .metrics }}
      ports:
        {{- with .port }}
        - {name: http, containerPort: {{ index $root.Values.config . }}}
        {{- end }}
        {{- if .metrics }}
        - {name: metrics, containerPort: 9100}
        {{- end }}
      {{- end }}
      {{- if .port }}
      {{- include "penstock.probes" . | nindent 6 }}
      {{- else if .metrics }}
      {{- include "penstock.metricsProbe" . | nindent 6 }}
      {{- end }}
      {{- with .probes }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
      resources: {{- toYaml .values.resources | nindent 8 }}
      securityContext: {{ include "penstock.containerSecurity" . }}
      volumeMounts: {{- include "penstock.ownMounts" . | nindent 8 }}
        {{- with .mounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumes:
    {{- if .claimed }}
    - {name: tmp, emptyDir: {}}
    {{- else }}
    {{- include "penstock.ownVolumes" . | nindent 4 }}
    {{- end }}
    {{- with .volumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end }}

{{- define "penstock.deployment" -}}
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .name }}}
spec:
  replicas: {{ .values.replicas }}
  selector: {matchLabels: {{ include "penstock.labels" .name }}}
  template: {{- include "penstock.pod" . | nindent 4 }}
{{- end }}

{{- define "penstock.service" -}}
apiVersion: v1
kind: Service
metadata: {name: {{ .name }}}
spec:
  selector: {{ include "penstock.labels" .name }}
  ports: [{name: http, port: 80, targetPort: http}]
{{- end }}

{{- define "penstock.disruptionBudget" -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: {{ .name }}}
spec:
  maxUnavailable: 1
  selector: {matchLabels: {{ include "penstock.labels" .name }}}
{{- end }}
