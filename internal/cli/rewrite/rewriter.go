// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rewrite

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/cli/explain"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/engine/preserved"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/verify"
)

// Options of a Rewriter.
type Options struct {
	// To is the version of the objects afterwards.
	To string
	// KeepPreserved writes values that the version cannot express into an annotation. Without it,
	// such an object stays.
	KeepPreserved bool
}

// Rewriter rewrites the objects of one kind.
type Rewriter struct {
	group, kind   string
	versions      []string
	resource      preserved.Resource
	to            string
	keepPreserved bool
	converter     *conversion.Converter
	explainer     *explain.Explainer
	defaults      verify.Defaults
	// samples has, by version, an object with a value in every field.
	samples map[string]any
}

// New returns a Rewriter for the compiled rules of a policy.
func New(policy *v1alpha1.ConversionPolicy, crd *apiextensionsv1.CustomResourceDefinition, result compile.Result, options Options) (*Rewriter, error) {
	ruleset := result.Ruleset
	if !slices.Contains(ruleset.Versions, options.To) {
		return nil, fmt.Errorf("version %q is not one of %s", options.To, strings.Join(ruleset.Versions, ", "))
	}
	r := &Rewriter{
		group: ruleset.Group, kind: ruleset.Kind, versions: ruleset.Versions, to: options.To, keepPreserved: options.KeepPreserved,
		samples: map[string]any{}, resource: preserved.Resource{Name: ruleset.CRD, Versions: ruleset.Versions},
	}
	var err error
	if r.converter, err = conversion.NewConverter(ruleset); err != nil {
		return nil, err
	}
	if r.explainer, err = explain.New(policy, result); err != nil {
		return nil, err
	}
	if r.defaults, err = verify.NewDefaults(crd); err != nil {
		return nil, err
	}
	for _, version := range r.versions {
		if r.samples[version], err = preserved.Decode(crds.FilledCanary(crd, version)); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Mentions reports whether a text may have objects of the kind. It is quick.
func (r *Rewriter) Mentions(text []byte) bool {
	return bytes.Contains(text, []byte(r.group+"/")) && bytes.Contains(text, []byte(r.kind))
}

// IsUTF16 reports whether a text starts with the byte order mark of UTF-16, as some shells of Windows
// write it. kubectl reads such a text.
func IsUTF16(text []byte) bool {
	return bytes.HasPrefix(text, []byte{0xff, 0xfe}) || bytes.HasPrefix(text, []byte{0xfe, 0xff})
}

// byteOrderMark may be at the start of a file.
const byteOrderMark = "\ufeff"

// Text rewrites the objects in a text. It never fails: what cannot be rewritten stays, with a problem.
func (r *Rewriter) Text(original []byte) *Result { return r.rewrite(original, false) }

func (r *Rewriter) rewrite(original []byte, isPatch bool) *Result {
	text, marked := strings.CutPrefix(string(original), byteOrderMark)
	hidden, actions, err := hide(text)
	if err != nil {
		if _, plain := parse(text); plain != nil {
			return &Result{Text: original, Problems: []Problem{problemOf(err)}}
		}
		hidden, actions = text, nil // it is YAML, and perhaps no template
	}
	unread := err
	documents, err := parse(hidden)
	if err != nil {
		return &Result{Text: original, Problems: []Problem{problemOf(err)}}
	}
	w := &rewriting{Rewriter: r, lines: newLines(hidden), actions: actions, unread: unread, isPatch: isPatch, left: map[int]bool{}}
	for {
		w.documents(documents)
		wrong := w.unlike(documents)
		if wrong < 0 {
			break
		}
		w.left[wrong] = true
	}
	result := &Result{Text: original, Objects: w.objects}
	if result.Changed() {
		after := replaced(w.text, w.edits)
		if actions != nil {
			after = actions.restore(after)
		}
		if marked {
			after = byteOrderMark + after
		}
		result.Text = []byte(after)
	}
	return result
}
