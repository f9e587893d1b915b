// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rewrite_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/cli/rewrite"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/engine/manifest"
	"github.com/conversion-operator/conversion-operator/internal/operator/verify"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/golden"
)

// newRewriter returns a Rewriter for the policy and definition in files.
func newRewriter(t testing.TB, options rewrite.Options, files ...string) *rewrite.Rewriter {
	t.Helper()
	policy, crd, result := read(t, files...)
	rewriter, err := rewrite.New(policy, crd, result, options)
	expect.NoError(t, err)
	return rewriter
}

// read compiles the first policy in files for the definition that follows.
func read(t testing.TB, files ...string) (*v1alpha1.ConversionPolicy, *apiextensionsv1.CustomResourceDefinition, compile.Result) {
	t.Helper()
	documents, err := manifest.ReadAll(files, nil)
	expect.NoError(t, err)
	policy, errs, err := verify.ReadPolicy(t.Context(), documents[0].JSON)
	if err != nil || len(errs) > 0 {
		t.Fatalf("the policy is not valid: %v %v", err, errs)
	}
	crd, err := verify.ReadDefinition(manifest.NewObject("", documents[1].JSON))
	expect.NoError(t, err)
	result, errs := verify.Compile(policy, crd)
	if len(errs) > 0 {
		t.Fatalf("the rules are not valid: %v", errs)
	}
	return policy, crd, result
}

// TestText: manifests with comments, quotes and several styles keep all of them, also those that people seldom
// write. Patches in a kustomization keep their line breaks, and are found in one line.
func TestText(t *testing.T) {
	t.Parallel()
	rewriter := newRewriter(t, rewrite.Options{To: "v1"}, "testdata/policy.yaml")
	for folder, test := range map[string]struct {
		least   int
		rewrite func(text []byte) *rewrite.Result
		prefix  string
	}{
		"manifests": {20, rewriter.Text, ""},
		"patches":   {8, func(text []byte) *rewrite.Result { return rewriter.Kustomization(text, nil) }, "patch-"},
	} {
		files, err := filepath.Glob(filepath.Join("testdata", folder, "*"))
		expect.NoError(t, err)
		if len(files) < test.least {
			t.Fatalf("there are only %d %s", len(files), folder)
		}
		for _, file := range files {
			t.Run(folder+"/"+filepath.Base(file), func(t *testing.T) {
				t.Parallel()
				text, err := os.ReadFile(file)
				expect.NoError(t, err)
				result := test.rewrite(text)
				golden.Check(t, string(result.Text)+"\n=====\n"+summary(result), "rewritten", test.prefix+filepath.Base(file))
				again := test.rewrite(result.Text)
				expect.Equal(t, "the text, a second time", string(result.Text), string(again.Text))
				expect.Equal(t, "the text changed a second time", false, again.Changed())
			})
		}
	}
}

func summary(result *rewrite.Result) string {
	var out strings.Builder
	for _, problem := range result.Problems {
		fmt.Fprintf(&out, "line %d: %s\n", problem.Line, problem.Message)
	}
	for _, object := range result.Objects {
		fmt.Fprintf(&out, "line %d: %s, %s, %s\n", object.Line, object.Name, object.From, object.State)
		for _, problem := range object.Problems {
			fmt.Fprintf(&out, "  line %d: %s: %s\n", problem.Line, problem.Field, problem.Message)
		}
		for _, problem := range object.Notes {
			fmt.Fprintf(&out, "  note, line %d: %s: %s\n", problem.Line, problem.Field, problem.Message)
		}
	}
	return out.String()
}

// TestPatchesKeepNothing: an annotation in a patch would replace what the object preserves.
func TestPatchesKeepNothing(t *testing.T) {
	t.Parallel()
	rewriter := newRewriter(t, rewrite.Options{To: "v1", KeepPreserved: true}, "testdata/policy.yaml")
	patches := rewriter.Patches([]byte("patches: [{path: p.yaml}]\n"))
	const text = "apiVersion: example.com/v1beta1\nkind: Gateway\nmetadata: {name: a}\nspec:\n  image: x\n  note: y\n"
	result := rewriter.Patch([]byte(text), patches["p.yaml"])
	const want = "line 1: a, v1beta1, Left\n  line 6: .spec.note: version v1 cannot express it: v1 has no such field\n"
	expect.Equal(t, "summary and text", []string{want, text}, []string{summary(result), string(result.Text)})
}

// TestGrowth: the memory that a file takes in all grows as its number of objects does. A copy of the text
// for each of them would take most of it.
func TestGrowth(t *testing.T) {
	rewriter := newRewriter(t, rewrite.Options{To: "v1"}, "testdata/policy.yaml")
	used := func(objects int) uint64 {
		text := []byte(strings.Repeat("---\napiVersion: example.com/v1beta1\nkind: Gateway\nmetadata: {name: a}\nspec: {replicas: 2} # "+strings.Repeat("comment ", 30)+"\n", objects))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		result := rewriter.Text(text)
		runtime.ReadMemStats(&after)
		if len(result.Objects) != objects || result.Objects[objects-1].State != rewrite.Rewritten {
			t.Fatalf("%d objects, want %d that are rewritten", len(result.Objects), objects)
		}
		return after.TotalAlloc - before.TotalAlloc
	}
	few, many := used(500), used(2000)
	if many > 5*few {
		t.Errorf("500 objects take %d bytes, and 2,000 take %d", few, many)
	}
}
