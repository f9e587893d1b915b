{{- /* One API version: its kinds, each followed by the types of its fields in the order in which a reader meets them. */ -}}
{{- define "gvDetails" -}}
{{- $gv := . -}}
{{- $seen := dict -}}
## {{ $gv.GroupVersionString }}

{{ $gv.Doc | trim }}
{{ range $gv.SortedKinds }}
{{- template "type" (dict "type" ($gv.TypeForKind .) "package" ($gv.TypeForKind .).Package "seen" $seen) }}
{{- end }}
{{- end -}}
