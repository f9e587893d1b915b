// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
)

// Convert appends an object, converted to a version, to dst.
type Convert func(dst, object []byte, toVersion string) ([]byte, error)

// NewThrough returns a Checker of objects that something else converts, such as a
// converter pod. Without a ruleset, the converter must drop nothing, and must convert
// between all versions of the CustomResourceDefinition.
func NewThrough(crd *apiextensionsv1.CustomResourceDefinition, rules compile.Result, convert Convert) (*Checker, error) {
	ruleset := rules.Ruleset
	if ruleset == nil {
		ruleset = &conversion.Ruleset{CRD: crd.Name, Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}
		for _, version := range crd.Spec.Versions {
			ruleset.Versions = append(ruleset.Versions, version.Name)
		}
		slices.Sort(ruleset.Versions)
	}
	c := (&Checker{ruleset: ruleset, versions: map[string]*version{}}).Another(convert)
	c.report.Versions, c.report.Leaves = ruleset.Versions, leavesOf(rules)
	return c, c.readSchemas(crd)
}

// Another returns a Checker of other objects with the same rules, which has found nothing yet. It may
// be used at the same time.
func (c *Checker) Another(convert Convert) *Checker {
	another := &Checker{
		ruleset: c.ruleset, convertBy: convert, now: func() time.Time { return time.Time{} }, tally: newTally(),
		versions: c.versions, directions: map[[2]string]*Direction{},
	}
	another.report.Versions, another.report.Leaves = c.report.Versions, c.report.Leaves
	for _, pair := range c.ruleset.Pairs() {
		another.directions[pair] = &Direction{From: pair[0], To: pair[1]}
	}
	return another
}

// Loss returns the finding if the object came back changed, or could not be converted;
// otherwise nil. A violation of a target's schema is not a loss: clients can read the object.
func (c *Checker) Loss() *Finding {
	for _, finding := range c.tally.sortedFindings() {
		if finding.Severity == SeverityError && finding.Kind != InvalidAtTarget {
			return &finding
		}
	}
	return nil
}
