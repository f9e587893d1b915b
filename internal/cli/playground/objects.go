// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package playground

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/cli/explain"
	"github.com/conversion-operator/conversion-operator/internal/cli/report"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/engine/manifest"
	"github.com/conversion-operator/conversion-operator/internal/engine/preserved"
	"github.com/conversion-operator/conversion-operator/internal/operator/verify"
)

// maxObjects bounds the objects whose conversions are listed. All of them are tested.
const maxObjects = 50

// Object is an object of the user, at every other version.
type Object struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	// Conversions are to all versions but its own.
	Conversions []Conversion `json:"conversions"`
}

// Conversion of an object to another version, and back.
type Conversion struct {
	To string `json:"to"`
	// Text is the converted object in YAML.
	Text string `json:"text"`
	// Steps explain it: one between a spoke and the hub, two between spokes.
	Steps []explain.Step `json:"steps"`
	// Back are the fields that differ after the conversion back.
	Back []Difference `json:"back"`
	// Error is why the object cannot be converted, empty otherwise.
	Error string `json:"error,omitempty"`
}

// Difference is a field that comes back changed.
type Difference struct {
	Path string `json:"path"`
	// Before and After are JSON, empty if there is no value.
	Before string `json:"before"`
	After  string `json:"after"`
}

// try converts the objects, and tests them.
func (c *Checked) try(ctx context.Context, in Input, policy *v1alpha1.ConversionPolicy, result compile.Result, checker *verify.Checker) error {
	objects, err := objectsIn(TextObjects, in.Objects)
	checker.Canaries(ctx)
	explainer, wrong := explain.New(policy, result)
	if wrong != nil {
		return wrong
	}
	converter, wrong := conversion.NewConverter(result.Ruleset)
	if wrong != nil {
		return wrong
	}
	of := converted{result.Ruleset, explainer, converter}
	for _, object := range objects {
		checker.Check(ctx, object.Object)
		group, version, _ := strings.Cut(object.APIVersion, "/")
		switch {
		case group != result.Ruleset.Group || object.Kind != result.Ruleset.Kind:
		case len(c.Objects) == maxObjects:
			c.MoreObjects++
		default:
			c.Objects = append(c.Objects, of.object(object.Object, version))
		}
	}
	from := ""
	if len(objects) > 0 {
		from = "the page"
	}
	return errors.Join(err, c.verified(checker.Report(from)))
}

// verified fills in the result of verify.
func (c *Checked) verified(found *verify.Report) error {
	var text strings.Builder
	if err := report.WriteTried(&text, found); err != nil {
		return err
	}
	c.Outcome, c.Title, c.Tried = found.Outcome, found.Title(), text.String()
	return nil
}

// converted converts objects by the rules of one policy.
type converted struct {
	ruleset   *conversion.Ruleset
	explainer *explain.Explainer
	converter *conversion.Converter
}

func (c converted) object(object manifest.Object, version string) Object {
	name := object.FullName()
	if name == "" {
		name = object.Place
	}
	of := Object{Name: name, Version: version, Conversions: []Conversion{}}
	for _, to := range c.ruleset.Versions {
		if to == version {
			continue
		}
		one := Conversion{To: to, Steps: []explain.Step{}, Back: []Difference{}}
		if err := c.convert(object, version, &one); err != nil {
			one.Error = err.Error()
		}
		of.Conversions = append(of.Conversions, one)
	}
	return of
}

func (c converted) convert(object manifest.Object, version string, one *Conversion) error {
	there, err := c.converter.Convert(nil, object.JSON, one.To)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := manifest.Write(&text, manifest.YAML, []manifest.Document{{JSON: there}}); err != nil {
		return err
	}
	one.Text = text.String()
	explained, err := c.explainer.Object(object.FullName(), object.JSON, one.To, false)
	if err != nil {
		return err
	}
	one.Steps = explained.Steps
	back, err := c.converter.Convert(nil, there, version)
	if err != nil {
		return fmt.Errorf("on the way back: %w", err)
	}
	return one.compare(preserved.Resource{Name: c.ruleset.CRD, Versions: c.ruleset.Versions}, object.JSON, back)
}

// compare lists what differs between an object and what came back, without preserved data of other versions.
func (one *Conversion) compare(of preserved.Resource, before, after []byte) error {
	var trees [2]any
	for i, text := range [][]byte{before, after} {
		tree, err := preserved.Decode(text)
		if err != nil {
			return err
		}
		trees[i] = of.Without(tree)
	}
	for _, d := range verify.Differences(trees[0], trees[1]) {
		one.Back = append(one.Back, Difference(d))
	}
	return nil
}
