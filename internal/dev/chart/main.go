// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command chart writes config/chart/templates/generated, from which Helm installs the operator.
// `make chart` runs it, in the root of the repository.
//
// kustomize builds config/default without and with each setting of settings.yaml: a component of
// config/components, or some patches. Lines that differ get the condition of the setting. Patches contain
// expressions of templates: helm(.Values.replicas) as a value, or {helm: toYaml .Values.resources} as a
// field or an item whose place the lines of the expression take.
//
// Two settings that change the same field need an expression in its place. internal/test/chart compares
// what Helm and kustomize render. All other files of config/chart are written by hand.
package main

import (
	"cmp"
	_ "embed"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

func main() {
	if err := run("."); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(root string) error {
	files, err := generate(filepath.Join(root, "config"))
	if err != nil {
		return err
	}
	folder := filepath.Join(root, "config", "chart", "templates", "generated")
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	for name, content := range files {
		file := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			return err
		}
	}
	return nil
}

//go:embed settings.yaml
var settingsFile []byte

// setting is what some values change.
type setting struct {
	// When is the condition, an expression. It is empty for what all installations have.
	When string
	// Component is a folder of config/components, and Needs are those before it.
	Component string
	Needs     []string
	// Patches are those of kustomize, after all components.
	Patches []types.Patch
}

// kinds are the conditions of all objects of some kinds.
var kinds = map[string]string{
	"CustomResourceDefinition":       ".Values.crds.enabled",
	"PriorityLevelConfiguration":     ".Values.flowcontrol.enabled",
	"MutatingAdmissionPolicy":        `.Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy"`,
	"MutatingAdmissionPolicyBinding": `.Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1/MutatingAdmissionPolicyBinding"`,
}

// generate returns the templates for the configuration, by their names below the generated folder.
func generate(config string) (map[string]string, error) {
	source, err := load(config)
	if err != nil {
		return nil, err
	}
	var settings []setting
	if err := yaml.UnmarshalStrict(settingsFile, &settings); err != nil {
		return nil, err
	}
	always := settings[0]
	all, err := build(source, nil, always.Patches)
	if err != nil {
		return nil, err
	}
	for _, each := range settings[1:] {
		before, err := build(source, each.Needs, always.Patches)
		if err != nil {
			return nil, err
		}
		components := slices.Clone(each.Needs)
		if each.Component != "" {
			components = append(components, each.Component)
		}
		after, err := build(source, components, slices.Concat(always.Patches, each.Patches))
		if err != nil {
			return nil, err
		}
		if all, err = merge(all, each, before, after); err != nil {
			return nil, err
		}
	}
	return files(all), nil
}

// load copies the configuration into memory, because kustomize wants relative paths below one root.
func load(config string) (filesys.FileSystem, error) {
	result := filesys.MakeFsInMemory()
	return result, filepath.WalkDir(config, func(file string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		return result.WriteFile("/config"+filepath.ToSlash(strings.TrimPrefix(file, config)), content)
	})
}

// build builds config/default with components and patches.
func build(source filesys.FileSystem, components []string, patches []types.Patch) ([]*object, error) {
	kustomization := types.Kustomization{Resources: []string{"../config/default"}, Patches: patches}
	for _, each := range components {
		kustomization.Components = append(kustomization.Components, "../config/components/"+each)
	}
	text, err := yaml.Marshal(kustomization)
	if err != nil {
		return nil, err
	}
	if err := source.WriteFile("/chart/kustomization.yaml", text); err != nil {
		return nil, err
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(source, "/chart")
	if err != nil {
		return nil, err
	}
	result := make([]*object, 0, built.Size())
	for _, each := range built.Resources() {
		one, err := read(each)
		if err != nil {
			return nil, err
		}
		result = append(result, one)
	}
	return result, nil
}

// merge adds what a setting changes from one installation to another.
func merge(all []*object, by setting, before, after []*object) ([]*object, error) {
	for _, old := range before {
		into := find(all, old.id)
		if into == nil || !slices.Equal(into.texts(), old.texts()) {
			return nil, fmt.Errorf("%s: %v, which %q needs, change it or are not settings before that", old.id, by.Needs, by.When)
		}
		if changed := find(after, old.id); changed != nil {
			into.merge(by.When, changed)
		} else {
			into.when = append(into.when, "not ("+by.When+")")
		}
	}
	for _, added := range after {
		if find(before, added.id) == nil {
			added.owner, added.when = by.Component, []string{by.When}
			all = append(all, added)
		}
	}
	return all, nil
}

func find(in []*object, id string) *object {
	if i := slices.IndexFunc(in, func(each *object) bool { return each.id == id }); i >= 0 {
		return in[i]
	}
	return nil
}

// files returns a file for each kind of each component. A chart has no Namespace: its template is
// only included, for comparison with the namespace of the release.
func files(all []*object) map[string]string {
	result := map[string]string{}
	for _, each := range all {
		if each.kind == "Namespace" {
			result["_namespace.tpl"] = "{{- define \"conversion-operator.namespace\" }}\n" + each.String() + "{{- end }}\n"
			continue
		}
		name := path.Join(cmp.Or(each.owner, "default"), strings.ToLower(each.kind)+".yaml")
		if result[name] == "" {
			result[name] = "# Generated by make chart from config/. Change that.\n"
		}
		if condition, has := kinds[each.kind]; has {
			each.when = append(each.when, condition)
		}
		result[name] += each.String()
	}
	return result
}

// object is the template of an object.
type object struct {
	id, kind string
	// owner is the component that adds it, empty for config/default.
	owner string
	// when are its conditions.
	when []string
	// lines are those of the installation that adds it.
	lines []line
	// end has what settings add after the lines.
	end line
}

// line is a line of an installation, the lines that settings add before it, and the conditions of the
// settings that remove it.
type line struct {
	text           string
	added, without []string
}

func newObject(id, kind, text string) *object {
	result := &object{id: id, kind: kind}
	for each := range strings.Lines(text) {
		result.lines = append(result.lines, line{text: each})
	}
	return result
}

func (o *object) texts() []string {
	result := make([]string, 0, len(o.lines))
	for _, each := range o.lines {
		result = append(result, each.text)
	}
	return result
}

// merge adds the difference to another variant, with the condition under which that is used.
func (o *object) merge(when string, other *object) {
	before := strings.Join(o.texts(), "")
	for _, edit := range udiff.Lines(before, strings.Join(other.texts(), "")) {
		first := strings.Count(before[:edit.Start], "\n")
		last := first + strings.Count(before[edit.Start:edit.End], "\n")
		for i := first; i < last; i++ {
			o.lines[i].without = append(o.lines[i].without, when)
		}
		at := &o.end
		if first < len(o.lines) {
			at = &o.lines[first]
		}
		if edit.New != "" {
			at.added = append(at.added, "{{- if "+when+" }}\n", edit.New, "{{- end }}\n")
		}
	}
}

// String returns the template.
func (o *object) String() string {
	result := &strings.Builder{}
	open := func(format string, conditions []string) {
		for _, each := range conditions {
			fmt.Fprintf(result, "{{- if "+format+" }}\n", each)
		}
	}
	closed := func(conditions []string) { result.WriteString(strings.Repeat("{{- end }}\n", len(conditions))) }
	open("%s", o.when)
	result.WriteString("---\n")
	var without []string
	for _, each := range append(o.lines, o.end) {
		if each.added != nil || !slices.Equal(each.without, without) {
			closed(without)
			result.WriteString(strings.Join(each.added, ""))
			open("not (%s)", each.without)
			without = each.without
		}
		result.WriteString(each.text)
	}
	closed(o.when)
	return result.String()
}

var (
	// block is a field or an item whose place the lines of an expression take.
	block = regexp.MustCompile(`(?m)^( *)(?:- )?helm: (.*)$`)
	// inline is an expression in a value.
	inline = regexp.MustCompile(`helm\((.*)\)`)
	// texts are texts that are something else in a chart. Of two at the same place, the first is used.
	texts = strings.NewReplacer(
		"{{", `{{ "{{" }}`,
		" conversion-system\n", " {{ .Release.Namespace | quote }}\n",
		"conversion-system", "{{ .Release.Namespace }}",
		"localhost/conversion-operator:dev", `{{ include "conversion-operator.image" . | quote }}`,
	)
)

// template returns the template of an object without conditions.
func template(text string) string {
	text = inline.ReplaceAllString(texts.Replace(text), "{{ $1 }}")
	return block.ReplaceAllStringFunc(text, func(line string) string {
		found := block.FindStringSubmatch(line)
		return fmt.Sprintf("%s{{- %s | nindent %d }}", found[1], found[2], len(found[1]))
	})
}

// read returns the template of an object that kustomize built.
func read(built *resource.Resource) (*object, error) {
	kind := built.GetKind()
	if kind != "Namespace" {
		labels := built.GetLabels()
		labels["helm"] = `include "conversion-operator.labels" .`
		if err := built.SetLabels(labels); err != nil {
			return nil, err
		}
	}
	text, err := built.AsYAML()
	return newObject(built.CurId().String(), kind, template(string(text))), err
}
