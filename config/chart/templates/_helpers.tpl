{{/* The image of all pods. */}}
{{- define "conversion-operator.image" -}}
{{- with .Values.image }}
{{- .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag }}{{ end }}
{{- end }}
{{- end }}

{{/* Labels that the chart adds to all objects. */}}
{{- define "conversion-operator.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* The namespace of Prometheus. */}}
{{- define "conversion-operator.prometheus" -}}
{{ .Values.prometheus.serviceAccount.namespace | default (ternary "openshift-monitoring" "monitoring" .Values.openshift.enabled) }}
{{- end }}

{{/* The pod of a hook: a command of the image, with the rights of the manager. */}}
{{- define "conversion-operator.hookPod" -}}
restartPolicy: Never
serviceAccountName: conversion-operator
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  seccompProfile:
    type: RuntimeDefault
nodeSelector:
  {{- toYaml .Values.nodeSelector | nindent 2 }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
containers:
- name: check
  image: {{ include "conversion-operator.image" . | quote }}
  imagePullPolicy: IfNotPresent
  resources:
    requests:
      cpu: 10m
      memory: 32Mi
    limits:
      memory: 256Mi
  securityContext:
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    capabilities:
      drop: [ALL]
{{- end }}
