{{- define "gvList" -}}
<!-- Generated from the Go types by `make api-reference`. Do not edit. -->
# API reference
{{ range . }}
{{ template "gvDetails" . }}
{{- end }}
{{- end -}}
