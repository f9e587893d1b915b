// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package export

import (
	_ "embed"
	"fmt"
	"regexp"
	"strings"
	"text/template"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/conversion-operator/conversion-operator/internal/operator/plan/converter"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
)

// A chart decides when it is installed: what is the namespace of the release, whether another converter has the
// CustomResourceDefinition, and which ruleset that names, which stays. All of it is in one template, so that these
// decisions are made once. Helm runs the check before it changes anything, with the new ruleset in a ConfigMap of its
// own, and only if pods of an earlier release run.

//go:embed template.yaml
var templateText string

var chart = template.Must(template.New("chart").Delims("[[", "]]").Parse(templateText))

// In the objects of a chart these stand for what the template decides. No other text has them.
const (
	namespaceMark = "namespace-of-the-release"
	imageMark     = "image-of-the-chart"
)

// caBundle is what the Secret has. The injector of cert-manager writes the same, but later, when another converter gives back.
const caBundle = `{{- with index $certificate "ca.crt" }}
        caBundle: {{ . }}
{{- end }}
`

// marks become expressions. A namespace may look like a number.
var marks = strings.NewReplacer(
	" "+namespaceMark+"\n", " {{ $namespace | quote }}\n", namespaceMark, "{{ $namespace }}",
	" "+imageMark+"\n", " {{ $image | quote }}\n",
	"{{", `{{ "{{" }}`,
)

// marked returns objects with expressions instead of marks.
func marked(objects []any) string {
	return strings.TrimSuffix(marks.Replace(documents(objects...)), "\n")
}

// template returns the file of a chart.
func (c Converter) template() (string, error) {
	in := c
	in.Namespace, in.Image = namespaceMark, imageMark
	objects, err := in.objects()
	if err != nil {
		return "", err
	}
	definition, err := in.chartDefinition()
	if err != nil {
		return "", err
	}
	result := &strings.Builder{}
	err = chart.Execute(result, map[string]any{
		"Name": c.Name, "CRD": c.CRD.Name, "Image": c.Image, "Path": converter.ConvertPath + "/" + c.hash(),
		"Certificate": c.certificate(), "GeneratesCertificate": c.Certificates == ByHelm, "Days": int(caLifetime / (24 * time.Hour)),
		"Definition": definition, "Objects": c.keepsLive(marked(objects)), "Check": marked(in.hooks()), "Migration": marked(in.migrationHooks()),
	})
	return result.String(), err
}

// keepsLive adds the ruleset that the CustomResourceDefinition names to the ConfigMap with that of the chart.
func (c Converter) keepsLive(text string) string {
	line := regexp.MustCompile("\n  " + regexp.QuoteMeta(c.key()) + ": .*\n").FindString(text)
	return strings.Replace(text, line, line+fmt.Sprintf(`{{- range $key, $ruleset := dig "binaryData" (dict) (lookup "v1" "ConfigMap" $namespace %q | default dict) }}
{{- if and $isOurs (hasSuffix (printf ".%%s.json.gz" (base ($service.path | default ""))) $key) (ne $key %q) }}
  {{ $key }}: {{ $ruleset }}
{{- end }}
{{- end }}
`, c.rulesetsName(), c.key()), 1)
}

// chartDefinition is the CustomResourceDefinition. Helm keeps it, with all objects, when the chart is uninstalled.
func (c Converter) chartDefinition() (string, error) {
	c.CRD = c.CRD.DeepCopy()
	metav1.SetMetaDataAnnotation(&c.CRD.ObjectMeta, "helm.sh/resource-policy", "keep")
	text, err := c.definition()
	if err != nil {
		return "", err
	}
	ours := strings.TrimPrefix(marked([]any{map[string]any{"conversion": c.conversion()}}), "---\n")
	webhook := "  " + strings.ReplaceAll(ours, "\n", "\n  ") + "\n"
	text = strings.Replace(marks.Replace(strings.TrimPrefix(text, "---\n")), webhook,
		"{{- if $converts }}\n"+strings.Replace(webhook, "clientConfig:\n", "clientConfig:\n"+caBundle, 1)+"{{- else }}\n  conversion: {{ toJson $live }}\n{{- end }}\n", 1)
	// The injector would give the authority of this converter to another one.
	injects := regexp.MustCompile("    " + regexp.QuoteMeta(injectAnnotation) + ": .*\n").FindString(text)
	text = strings.Replace(text, injects, "{{- if and $converts (not $values.operator) }}\n"+injects+"{{- end }}\n", min(1, len(injects)))
	return strings.TrimSuffix(text, "\n"), nil
}

// hooks check the pods before an upgrade changes anything.
func (c Converter) hooks() []any {
	text, _ := c.rulesets() // objects has returned the error
	next := corev1apply.ConfigMap(c.nextRulesets(), c.Namespace).WithLabels(c.labels(names.ConverterComponent)).
		WithAnnotations(hookOf("pre-upgrade", "-1")).WithBinaryData(text)
	return []any{next, c.job(c.checkName(), checkComponent, c.nextRulesets()).WithAnnotations(hookOf("pre-upgrade", "0"))}
}

// migrationHooks migrate after an upgrade. The rights are no hooks.
func (c Converter) migrationHooks() []any {
	return append(c.migrationRights(), c.migrateJob().WithAnnotations(hookOf("post-upgrade", "0")))
}

func hookOf(event, weight string) map[string]string {
	return map[string]string{"helm.sh/hook": event, "helm.sh/hook-weight": weight, "helm.sh/hook-delete-policy": "before-hook-creation,hook-succeeded"}
}
