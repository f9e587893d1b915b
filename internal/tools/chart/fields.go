// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
)

// otherValues are the values of components that are not called <component>.enabled, as pipelines.
var otherValues = map[string]string{
	"granted-rights": `(eq .Values.rights "granted")`,
	"single-replica": "(eq (int .Values.replicas) 1)",
}

// expression returns the pipeline that is true if a component is installed.
func expression(component string) string {
	if other, has := otherValues[component]; has {
		return other
	}
	first, rest, _ := strings.Cut(component, "-")
	for word := range strings.SplitSeq(rest, "-") {
		if word != "" {
			first += strings.ToUpper(word[:1]) + word[1:]
		}
	}
	return ".Values." + first + ".enabled"
}

// folderValues are the values that decide about all objects of a folder of config/.
var folderValues = map[string]string{
	"crd":         ".Values.crds.enabled",
	"flowcontrol": ".Values.flowcontrol.enabled",
}

// optional are kinds that are installed only if the cluster serves them.
var optional = []string{"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"}

// conditions returns what an object depends on, besides components.
func (o *template) conditions() []string {
	var tests []string
	folder, _, _ := strings.Cut(o.source, "/")
	if value, has := folderValues[folder]; has {
		tests = append(tests, value)
	}
	if slices.Contains(optional, o.id.kind) {
		tests = append(tests, fmt.Sprintf("(.Capabilities.APIVersions.Has %q)", o.id.apiVersion+"/"+o.id.kind))
	}
	return tests
}

// setting is a part of objects of a kind that has a value of its own.
type setting struct {
	// kind and name are empty for all kinds and names.
	kind, name string
	// path is the field whose content the text is added to. Items of lists are found by their names.
	path string
	// key is the field that the text replaces, or * for all of them. If it is empty, the text is
	// lines, in which <indent> is the indentation of the fields.
	key  string
	text text
	// when are conditions on all of it.
	when []string
}

var settings = []setting{
	{path: "metadata.labels", text: `{{- include "conversion-operator.labels" . | nindent <indent> }}`},
	{kind: "CustomResourceDefinition", path: "metadata.annotations", text: "helm.sh/resource-policy: keep", when: []string{".Values.crds.keep"}},
	{kind: "ServiceAccount", text: pullSecrets},
	// The pods of abandoned policies need it when the operator is gone.
	{kind: "ServiceAccount", name: "conversion-operator-converter", path: "metadata.annotations", text: "helm.sh/resource-policy: keep"},
	{kind: "Deployment", path: "spec", key: "replicas", text: "{{ .Values.replicas }}"},
	{kind: "Deployment", path: "spec.template.metadata.labels", text: with("commonLabels", "{{- toYaml . | nindent <indent> }}")},
	{kind: "Deployment", path: podSpec + ".nodeSelector", key: "*", text: "{{- toYaml .Values.nodeSelector | nindent <indent> }}"},
	{kind: "Deployment", path: podSpec, text: pullSecrets},
	{kind: "Deployment", path: podSpec, text: with("priorityClassName", "priorityClassName: {{ . | quote }}")},
	{kind: "Deployment", path: podSpec, text: with("tolerations", "tolerations:\n{{- toYaml . | nindent <indent> }}")},
	{kind: "Deployment", path: podSpec, text: with("affinity", "affinity:\n{{- toYaml . | nindent <indent+2> }}")},
	{kind: "Deployment", path: manager + ".args", text: with("priorityClassName", "- {{ printf \"--converter-priority-class=%s\" . | quote }}")},
	{kind: "Deployment", path: manager + ".args", text: with("extraArgs", "{{- toYaml . | nindent <indent> }}")},
	{kind: "Deployment", path: manager + ".resources", key: "*", text: "{{- toYaml .Values.resources | nindent <indent> }}"},
	{kind: "RoleBinding", name: scrape, path: "subjects.prometheus-k8s", key: "namespace", text: scrapeNamespace},
	{kind: "RoleBinding", name: scrape, path: "subjects.prometheus-k8s", key: "name", text: "{{ .Values.prometheus.serviceAccount.name | quote }}"},
	{kind: "ClusterRoleBinding", name: scrape, path: "subjects.prometheus-k8s", key: "namespace", text: scrapeNamespace},
	{kind: "ClusterRoleBinding", name: scrape, path: "subjects.prometheus-k8s", key: "name", text: "{{ .Values.prometheus.serviceAccount.name | quote }}"},
}

const (
	scrape          = "conversion-operator-scrape"
	scrapeNamespace = text(`{{ .Values.prometheus.serviceAccount.namespace | default (ternary "openshift-monitoring" "monitoring" .Values.openshift.enabled) | quote }}`)
	podSpec         = "spec.template.spec"
	manager         = podSpec + ".containers.manager"
	pullSecrets     = text("{{- with .Values.image.pullSecrets }}\nimagePullSecrets:\n{{- toYaml . | nindent <indent> }}\n{{- end }}")
)

func with(value, lines string) text {
	return text("{{- with .Values." + value + " }}\n" + lines + "\n{{- end }}")
}

// apply puts the settings for an object into its template.
func (o *template) apply(settings []setting) error {
	for _, each := range settings {
		if each.kind != "" && each.kind != o.id.kind || each.name != "" && each.name != o.id.name {
			continue
		}
		if err := each.apply(o.content); err != nil {
			return fmt.Errorf("%s %s: %s: %w", o.id.kind, o.id.name, each.path, err)
		}
	}
	return nil
}

func (s setting) apply(content *mapping) error {
	var at node = content
	for key := range strings.SplitSeq(s.path, ".") {
		if key == "" {
			break
		}
		var err error
		if at, err = enter(at, key, s.when); err != nil {
			return err
		}
	}
	switch at := at.(type) {
	case *list:
		at.items = append(at.items, item{value: s.text})
	case *mapping:
		at.set(s)
	}
	return nil
}

// set adds or replaces fields.
func (m *mapping) set(s setting) {
	when := condition{other: s.when}
	if len(m.fields) == 0 { // added with the same condition
		when = condition{}
	}
	switch s.key {
	case "*":
		m.fields = []field{{value: s.text}}
		return
	case "":
		m.fields = append(m.fields, field{when: when, value: s.text})
		return
	}
	for i := range m.fields {
		if m.fields[i].key == s.key {
			m.fields[i] = field{key: s.key, value: s.text}
		}
	}
}

// enter returns the content of a field, or of the item with that name. A missing object is added.
func enter(from node, key string, when []string) (node, error) {
	switch from := from.(type) {
	case *mapping:
		for i := range from.fields {
			if from.fields[i].key == key {
				from.fields[i].value = opened(from.fields[i].value)
				return from.fields[i].value, nil
			}
		}
		added := &mapping{}
		from.fields = append(from.fields, field{key, condition{other: when}, added})
		return added, nil
	case *list:
		for i := range from.items {
			from.items[i].value = opened(from.items[i].value)
			if named, is := from.items[i].value.(*mapping); is && named.is(key) {
				return named, nil
			}
		}
	}
	return nil, fmt.Errorf("there is no %s", key)
}

func (m *mapping) is(name string) bool {
	return slices.ContainsFunc(m.fields, func(each field) bool { return each.key == "name" && each.value == (any)(name) })
}

// opened returns a plain value as one whose fields can be changed.
func opened(value node) node {
	switch value := value.(type) {
	case map[string]any:
		return &mapping{plainFields(value)}
	case []any:
		return &list{plainItems(value)}
	}
	return value
}
