// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package playground

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/config/samples"
	"github.com/conversion-operator/conversion-operator/internal/engine/manifest"
	"github.com/conversion-operator/conversion-operator/internal/operator/verify"
)

// Input has the texts of the page, each in YAML or JSON.
type Input struct {
	// CRD has the CustomResourceDefinition, Policy the ConversionPolicy. Other documents in them are ignored.
	CRD    string `json:"crd"`
	Policy string `json:"policy"`
	// Objects can have several documents, and lists.
	Objects string `json:"objects"`
}

// Sample returns the texts of a page that begins without files.
func Sample() Input {
	return Input{CRD: samples.CronTabs, Policy: samples.CronTabPolicy, Objects: samples.CronTabObjects}
}

// Start is what a page begins with.
type Start struct {
	Texts Input `json:"texts"`
	// Live names a cluster whose objects can be tested, empty if there is none.
	Live string `json:"live,omitempty"`
}

// Text is one of the texts of an Input.
type Text string

// The texts, which are also their names in messages.
const (
	TextCRD     Text = "crd"
	TextPolicy  Text = "policy"
	TextObjects Text = "objects"
)

// Problem is why a text is not valid.
type Problem struct {
	Text Text `json:"text"`
	// Line and Column are where it is in the text, from 1; Line is 0 for the whole text.
	Line   int `json:"line,omitempty"`
	Column int `json:"column,omitempty"`
	// Path is the field, empty if the text cannot be read.
	Path    string `json:"path,omitempty"`
	Message string `json:"message"`
}

// problems is an error: a list of them.
type problems []Problem

func (p problems) Error() string {
	return fmt.Sprintf("%d problems, the first: %s", len(p), p[0].Message)
}

// whole returns the error as problems. Errors of YAML and JSON parsers name the line.
func whole(text Text, err error) problems {
	if found, isFound := errors.AsType[problems](err); isFound {
		return found
	}
	problem := Problem{Text: text, Message: err.Error()}
	if line := inLine.FindStringSubmatch(err.Error()); line != nil {
		problem.Line, _ = strconv.Atoi(line[1])
		problem.Column = 1
	}
	return problems{problem}
}

var inLine = regexp.MustCompile(`\bline (\d+):`)

// document is an object of a text, and its number among the documents, from 1.
type document struct {
	manifest.Object
	index int
}

// objectsIn returns the objects of a text.
func objectsIn(text Text, content string) ([]document, error) {
	documents, err := manifest.Parse(string(text), []byte(content))
	if err != nil {
		return nil, whole(text, err)
	}
	var all []document
	for _, one := range documents {
		objects, err := one.Objects()
		if err != nil {
			return nil, whole(text, err)
		}
		for _, object := range objects {
			all = append(all, document{object, one.Index})
		}
	}
	return all, nil
}

// theOnly returns the one object of a kind in a text.
func theOnly(text Text, content, kind string) (document, error) {
	all, err := objectsIn(text, content)
	if err != nil {
		return document{}, err
	}
	var found []document
	for _, object := range all {
		if object.Kind == kind {
			found = append(found, object)
		}
	}
	switch len(found) {
	case 0:
		return document{}, whole(text, fmt.Errorf("there is no %s: paste one here", kind))
	case 1:
		return found[0], nil
	}
	return document{}, whole(text, fmt.Errorf("there are %d objects of the kind %s: leave only one", len(found), kind))
}

// readDefinition reads the definition, which need not be valid, and its number among the documents.
func (in Input) readDefinition() (*apiextensionsv1.CustomResourceDefinition, int, error) {
	object, err := theOnly(TextCRD, in.CRD, "CustomResourceDefinition")
	if err != nil {
		return nil, 0, err
	}
	crd, err := verify.ReadDefinition(object.Object)
	if err != nil {
		return nil, 0, whole(TextCRD, err)
	}
	return crd, object.index, nil
}

// definition reads the definition, and validates it as an API server would.
func (in Input) definition(ctx context.Context) (*apiextensionsv1.CustomResourceDefinition, error) {
	crd, index, err := in.readDefinition()
	if err != nil {
		return nil, err
	}
	errs, err := verify.ValidateDefinition(ctx, crd)
	if err != nil {
		return nil, whole(TextCRD, err)
	}
	if len(errs) > 0 {
		return nil, problemsIn(TextCRD, in.CRD, index, errs)
	}
	return crd, nil
}

// policy reads the policy, and its number among the documents.
func (in Input) policy(ctx context.Context) (*v1alpha1.ConversionPolicy, int, error) {
	object, err := theOnly(TextPolicy, in.Policy, "ConversionPolicy")
	if err != nil {
		return nil, 0, err
	}
	policy, errs, err := verify.ReadPolicy(ctx, object.JSON)
	if err != nil {
		return nil, 0, whole(TextPolicy, err)
	}
	if len(errs) > 0 {
		return nil, object.index, in.inPolicy(object.index, errs)
	}
	return policy, object.index, nil
}

// inPolicy returns errors of the policy with their positions.
func (in Input) inPolicy(index int, errs []verify.RuleError) problems {
	return problemsIn(TextPolicy, in.Policy, index, errs)
}

func problemsIn(text Text, content string, index int, errs []verify.RuleError) problems {
	where := manifest.NewPositions(content, index)
	var found problems
	for _, err := range errs {
		problem := Problem{Text: text, Path: err.Path, Message: err.Message}
		if problem.Line, problem.Column = where.Of(err.Path); problem.Line == 0 {
			problem.Line, problem.Column = 1, 1
		}
		found = append(found, problem)
	}
	return found
}
