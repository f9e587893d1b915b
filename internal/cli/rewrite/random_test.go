// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rewrite_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/internal/cli/rewrite"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/manifest"
	"github.com/conversion-operator/conversion-operator/internal/engine/preserved"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/verify"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

var rounds = flag.Int("rounds", 50, "manifests for each pair of versions in TestRandomManifests")

// TestRandomManifests: manifests of every kind of the catalogue, in random styles and with random
// comments. An independent reading finds the values that an API server would have, and each
// comment once.
func TestRandomManifests(t *testing.T) {
	for _, files := range [][]string{
		{"testdata/policy.yaml"},
		{"../../../config/samples/crontab-cronspec/2-policy.yaml", "../../../config/samples/crontab-cronspec/3-crd-both.yaml"},
		{"../../../config/samples/crontab-hostport/2-policy.yaml", "../../../config/samples/crontab-hostport/3-crd-both.yaml"},
	} {
		t.Run(filepath.Base(filepath.Dir(files[0])), func(t *testing.T) {
			t.Parallel()
			k := newRandomKind(t, files...)
			for _, from := range k.versions {
				for _, to := range k.versions {
					if from != to {
						k.test(t, from, to)
					}
				}
			}
		})
	}
}

// randomKind makes manifests of a kind.
type randomKind struct {
	files    []string
	crd      *apiextensionsv1.CustomResourceDefinition
	versions []string
	convert  func(text []byte, to string) ([]byte, error)
	defaults verify.Defaults
}

func newRandomKind(t *testing.T, files ...string) *randomKind {
	t.Helper()
	_, crd, result := read(t, files...)
	defaults, err := verify.NewDefaults(crd)
	expect.NoError(t, err)
	converter, err := conversion.NewConverter(result.Ruleset)
	expect.NoError(t, err)
	return &randomKind{files, crd, result.Ruleset.Versions, func(text []byte, to string) ([]byte, error) { return converter.Convert(nil, text, to) }, defaults}
}

func (k *randomKind) test(t *testing.T, from, to string) {
	t.Helper()
	rewriter := newRewriter(t, rewrite.Options{To: to, KeepPreserved: true}, k.files...)
	canary, err := preserved.Decode(crds.FilledCanary(k.crd, from))
	expect.NoError(t, err)
	for round := range *rounds {
		random := rand.New(rand.NewPCG(uint64(round), 1))
		w := &randomWriter{Rand: random, newline: pick(random, "\n", "\n", "\r\n"), step: pick(random, 2, 2, 4), dashes: pick(random, 0, 2)}
		object := thinned(random, canary, 0)
		old := w.document(object)
		result := rewriter.Text([]byte(old))
		if len(result.Objects) != 1 || result.Objects[0].State != rewrite.Rewritten {
			t.Errorf("%s to %s, round %d: %+v %+v\n%s", from, to, round, result.Problems, result.Objects, old)
			continue
		}
		if diff := k.unlike(t, old, string(result.Text), to); diff != "" {
			t.Errorf("%s to %s, round %d: %s\n%s\nbecame\n%s", from, to, round, diff, old, result.Text)
		}
		for i := range w.comments {
			if n := strings.Count(string(result.Text), fmt.Sprintf("# comment %d.", i)); n != 1 {
				t.Errorf("%s to %s, round %d: comment %d is there %d times\n%s\nbecame\n%s", from, to, round, i, n, old, result.Text)
			}
		}
	}
}

// unlike compares what an API server has of both manifests, without preserved data.
func (k *randomKind) unlike(t *testing.T, old, rewritten, to string) string {
	t.Helper()
	values := func(text string) any {
		documents, err := manifest.Parse("a manifest", []byte(text))
		expect.NoError(t, err)
		value, err := preserved.Decode(documents[0].JSON)
		expect.NoError(t, err)
		return value
	}
	before := values(old)
	apiVersion := before.(map[string]any)["apiVersion"].(string)
	filled, err := k.defaults.Fill(apiVersion[strings.LastIndex(apiVersion, "/")+1:], before)
	expect.NoError(t, err)
	converted, err := k.convert(preserved.Encode(filled), to)
	expect.NoError(t, err)
	wanted, err := preserved.Decode(converted)
	expect.NoError(t, err)
	resource := preserved.Resource{Name: k.crd.Name, Versions: k.versions}
	want, err := k.defaults.Fill(to, resource.Without(wanted))
	expect.NoError(t, err)
	got, err := k.defaults.Fill(to, resource.Without(values(rewritten)))
	expect.NoError(t, err)
	if !reflect.DeepEqual(got, want) {
		return fmt.Sprintf("an API server has\n%s\nbut wants\n%s", preserved.Encode(got), preserved.Encode(want))
	}
	return ""
}

// thinned leaves out random fields, and repeats random elements.
func thinned(random *rand.Rand, value any, depth int) any {
	switch value := value.(type) {
	case map[string]any:
		thin := map[string]any{}
		for _, name := range slices.Sorted(maps.Keys(value)) {
			if depth > 1 && random.IntN(4) == 0 {
				continue
			}
			thin[name] = thinned(random, value[name], depth+1)
		}
		return thin
	case []any:
		var list []any
		for _, element := range value {
			for range 1 + random.IntN(3) {
				list = append(list, thinned(random, varied(random, element), depth+1))
			}
		}
		return list
	}
	return value
}

// varied returns an element with other strings.
func varied(random *rand.Rand, value any) any {
	switch value := value.(type) {
	case map[string]any:
		other := map[string]any{}
		for _, name := range slices.Sorted(maps.Keys(value)) {
			other[name] = varied(random, value[name])
		}
		return other
	case string:
		return value + pick(random, "", "a", "b", "cc dd")
	}
	return value
}

// randomWriter writes YAML in a random style.
type randomWriter struct {
	*rand.Rand
	newline      string
	step, dashes int
	comments     int
}

func pick[T any](random *rand.Rand, of ...T) T { return of[random.IntN(len(of))] }

func (w *randomWriter) document(object any) string {
	var out strings.Builder
	w.members(&out, object.(map[string]any), 0)
	return out.String()
}

func (w *randomWriter) line(out *strings.Builder, text string) {
	out.WriteString(text)
	if w.IntN(5) == 0 {
		out.WriteString(" " + w.comment())
	}
	out.WriteString(w.newline)
}

func (w *randomWriter) comment() string {
	w.comments++
	return fmt.Sprintf("# comment %d.", w.comments-1)
}

func (w *randomWriter) head(out *strings.Builder, column int) {
	switch w.IntN(8) {
	case 0:
		out.WriteString(w.newline)
	case 1:
		out.WriteString(strings.Repeat(" ", column) + w.comment() + w.newline)
	}
}

func (w *randomWriter) members(out *strings.Builder, members map[string]any, column int) {
	names := slices.Collect(maps.Keys(members))
	slices.Sort(names)
	w.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range names {
		w.head(out, column)
		w.entry(out, strings.Repeat(" ", column)+w.text(name)+":", members[name], column)
	}
}

func (w *randomWriter) entry(out *strings.Builder, mark string, value any, column int) {
	list, isList := value.([]any)
	members, isMapping := value.(map[string]any)
	if len(list)+len(members) == 0 || w.IntN(5) == 0 {
		w.line(out, mark+" "+w.inline(value))
		return
	}
	switch {
	case isMapping:
		w.line(out, mark)
		w.members(out, members, column+w.step)
	case isList:
		w.line(out, mark)
		for _, element := range list {
			w.head(out, column+w.dashes)
			w.element(out, element, column+w.dashes)
		}
	}
}

func (w *randomWriter) element(out *strings.Builder, element any, column int) {
	members, isMapping := element.(map[string]any)
	if !isMapping || len(members) == 0 || w.IntN(5) == 0 {
		w.line(out, strings.Repeat(" ", column)+"- "+w.inline(element))
		return
	}
	var text strings.Builder
	w.members(&text, members, column+2)
	if lines := text.String(); strings.TrimLeft(lines, " \r\n")[0] != '#' && strings.HasPrefix(lines, strings.Repeat(" ", column+2)) {
		out.WriteString(strings.Repeat(" ", column) + "- " + lines[column+2:])
	} else {
		out.WriteString(strings.Repeat(" ", column) + "-" + w.newline + lines)
	}
}

// inline writes any value in a line.
func (w *randomWriter) inline(value any) string {
	var items []string
	switch value := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			items = append(items, w.text(name)+": "+w.inline(value[name]))
		}
		return "{" + strings.Join(items, pick(w.Rand, ", ", ",  ")) + pick(w.Rand, "}", " }")
	case []any:
		for _, element := range value {
			items = append(items, w.inline(element))
		}
		return "[" + strings.Join(items, ", ") + "]"
	case string:
		return w.text(value)
	}
	text, _ := json.Marshal(value)
	return string(text)
}

// text writes a string with or without quotes.
func (w *randomWriter) text(value string) string {
	plain := strings.Trim(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == "" && len(value) > 5
	switch {
	case plain && w.IntN(3) > 0:
		return value
	case !strings.ContainsAny(value, "'\n\r\t\\") && w.IntN(2) == 0:
		return "'" + value + "'"
	}
	text, _ := json.Marshal(value)
	return string(text)
}
