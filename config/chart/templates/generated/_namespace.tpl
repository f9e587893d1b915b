{{- define "conversion-operator.namespace" }}
---
apiVersion: v1
kind: Namespace
metadata:
{{- if .Values.openshift.enabled }}
  annotations:
    openshift.io/node-selector: ""
{{- end }}
  labels:
    app.kubernetes.io/name: conversion-operator
    app.kubernetes.io/part-of: conversion-operator
{{- if .Values.openshift.enabled }}
    openshift.io/cluster-monitoring: "true"
{{- end }}
    pod-security.kubernetes.io/audit: restricted
    pod-security.kubernetes.io/enforce: restricted
    pod-security.kubernetes.io/warn: restricted
  name: {{ .Release.Namespace | quote }}
{{- end }}
