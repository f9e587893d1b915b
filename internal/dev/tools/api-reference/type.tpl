{{- /* One type, then those of its fields that are of the same package and were not shown before. */ -}}
{{- define "type" -}}
{{- $t := .type -}}{{- $package := .package -}}{{- $seen := .seen -}}
{{- if and $t (not (hasKey $seen $t.Name)) -}}
{{- if and (eq $t.Package $package) $t.Name (or $t.GVK $t.References) -}}
{{- $_ := set $seen $t.Name true }}
### {{ $t.Name }}

{{ $t.Doc | trim }}
{{ if $t.IsAlias }}
It is a {{ markdownRenderType $t.UnderlyingType }}{{ template "limits" $t.Validation }}.
{{ end }}
{{- if $t.EnumValues }}
| value | meaning |
| --- | --- |
{{ range $t.EnumValues -}}
| `{{ .Name }}` | {{ template "cell" .Doc }} |
{{ end -}}
{{ end -}}
{{- if $t.Members }}
| field | meaning | default and limits |
| --- | --- | --- |
{{ if $t.GVK -}}
| `apiVersion` *string* | `{{ $t.GVK.Group }}/{{ $t.GVK.Version }}` | required |
| `kind` *string* | `{{ $t.GVK.Kind }}` | required |
{{ end -}}
{{ range $t.Members -}}
| `{{ .Name }}` *{{ markdownRenderType .Type }}* | {{ template "meaning" . }} | {{ template "required" . }}{{ if .Default }}, default `{{ .Default }}`{{ end }}{{ if not .Type.IsAlias }}{{ template "limits" .Validation }}{{ end }} |
{{ end -}}
{{ end -}}
{{- end -}}
{{- template "type" (dict "type" $t.UnderlyingType "package" $package "seen" $seen) -}}
{{- template "type" (dict "type" $t.ValueType "package" $package "seen" $seen) -}}
{{- range $t.Members -}}
{{- template "type" (dict "type" .Type "package" $package "seen" $seen) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "meaning" -}}
{{- if eq .Name "metadata" -}}
the usual metadata; see the Kubernetes API documentation
{{- else -}}
{{ template "cell" .Doc }}
{{- end -}}
{{- end -}}

{{- /* Text in a table: one line, and no bar that would end the cell. */ -}}
{{- define "cell" -}}
{{ . | trim | replace "|" "\\|" | replace "\n" " " }}
{{- end -}}

{{- define "required" -}}
{{- $required := false -}}
{{- range .Validation }}{{ if hasPrefix "Required" . }}{{ $required = true }}{{ end }}{{ end -}}
{{ if $required }}required{{ else }}optional{{ end }}
{{- end -}}

{{- /* Requiredness has its own place, and the values of an enum their own table. A named type shows its limits once, in its own section. */ -}}
{{- define "limits" -}}
{{- range . -}}
{{- if not (or (hasPrefix "Required" .) (hasPrefix "Optional" .) (hasPrefix "Enum" .)) }}, {{ . | replace "|" "\\|" | replace "Pattern: " "pattern " | replace ": " " " }}{{ end -}}
{{- end -}}
{{- end -}}
