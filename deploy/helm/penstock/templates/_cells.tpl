{{/* Template of a cell. The worker sets name, labels, desired application and image. */}}
{{- define "penstock.cell" -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  labels: {{ include "penstock.labels" "cell" }}
spec:
  replicas: 1
  strategy: {type: Recreate} # the old pod drains before the new one starts
  selector: {matchLabels: {{ include "penstock.labels" "cell" }}}
  template:
    metadata:
      labels: {{ include "penstock.labels" "cell" }}
    spec:
      serviceAccountName: cell
      automountServiceAccountToken: true # Spark creates executors
      terminationGracePeriodSeconds: 75
      securityContext: {{ include "penstock.podSecurity" . }}
      {{- include "penstock.pullSecrets" . | nindent 6 }}
      tolerations: # pods leave a lost node after half a minute instead of five
        - {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 30}
        - {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 30}
      topologySpreadConstraints: {{- include "penstock.spread" "cell" | nindent 8 }}
      containers:
        - name: keeper
          command: [python, -m, controlplane.compute.keeper]
          env:
            - {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
            - {name: POD_NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
            - {name: POD_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
          envFrom: {{- include "penstock.envFrom" (dict "root" . "secrets" (list "data")) | nindent 12 }}
            {{- include "penstock.lakeSecret" . | nindent 12 }}
          ports: [{name: metrics, containerPort: 9100}]
          {{- include "penstock.metricsProbe" . | nindent 10 }}
          resources: {{- toYaml .Values.cell.resources | nindent 12 }}
          securityContext: {{ include "penstock.containerSecurity" . }}
          volumeMounts: {{- include "penstock.ownMounts" . | nindent 12 }}
            - {name: var, mountPath: /var/penstock/data, subPath: data} # otherwise the next mount creates it, owned by root
            - {name: shared, mountPath: /var/penstock/releases, subPath: releases}
            {{- include "penstock.cellMounts" . | nindent 12 }}
            - {name: cells, mountPath: /etc/penstock/cells, readOnly: true}
      volumes: {{- include "penstock.ownVolumes" . | nindent 8 }}
        - {{ include "penstock.sharedVolume" . }}
        - {name: cells, configMap: {name: penstock-cells}}
{{- end }}

{{/* Template of an executor of a cell. Spark sets name, image, variables, CPU and memory. */}}
{{- define "penstock.executor" -}}
apiVersion: v1
kind: Pod
metadata:
  labels: {{ include "penstock.labels" "executor" }}
spec:
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 10
  securityContext: {{ include "penstock.podSecurity" . }}
  {{- include "penstock.pullSecrets" . | nindent 2 }}
  topologySpreadConstraints: {{- include "penstock.spread" "executor" | nindent 4 }}
  containers:
    - name: executor
      command: [python, -m, controlplane.compute.executor] # Spark appends the argument `executor`
      envFrom: {{- include "penstock.envFrom" (dict "root" . "secrets" (list "data")) | nindent 8 }}
        {{- include "penstock.lakeSecret" . | nindent 8 }}
      securityContext: {{ include "penstock.containerSecurity" . }}
      volumeMounts: {{- include "penstock.ownMounts" . | nindent 8 }}
        - {name: var, mountPath: /var/penstock/data, subPath: data} # otherwise the next mount creates it, owned by root
        {{- include "penstock.cellMounts" . | nindent 8 }}
  volumes: {{- include "penstock.ownVolumes" . | nindent 4 }}
    - {{ include "penstock.sharedVolume" . }}
{{- end }}
