// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package converter

import (
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/gate"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
)

// Crossplane generates some CustomResourceDefinitions from a CompositeResourceDefinition (XRD), and
// replaces them as a whole. Their spec.conversion is therefore written to the XRD, and Crossplane copies
// it. What counts is always that of the CustomResourceDefinition.

// CompositePause is the time between two reads of an XRD that the operator cannot read. It is not
// watched, because clusters without Crossplane lack the kind.
const CompositePause = 30 * time.Second

// Switch writes spec.conversion. It writes nothing if Crossplane has to copy the same conversion, and
// nothing for claims, whose conversion belongs to the policy of the composite resources.
func (c *Converter) Switch(conversion *apiextensionsv1.CustomResourceConversion, mayWait bool) gate.Work {
	var work gate.Work
	switch {
	case crds.OfClaims(c.CRD):
	case c.CompositeProblem.Message != "":
		work.Recheck(CompositePause)
	case c.Composite != nil && c.ConversionIsOurs() && crds.SameConversion(c.Composite.Spec.Conversion, conversion):
		// The change of the CustomResourceDefinition wakes the policy.
	default:
		work.Do(step.SwitchCRD{Pin: c.pin(), Conversion: conversion, MayWait: mayWait})
	}
	return work
}

// RemoveConversion sets the strategy None. It leaves a conversion of the XRD that another client wrote, or
// that belongs to the policy of the composite resources.
func (c *Converter) RemoveConversion() gate.Work {
	var work gate.Work
	switch {
	case crds.OfClaims(c.CRD):
	case c.CompositeProblem.Message != "":
		work.Recheck(CompositePause)
	case c.Composite != nil && (c.Composite.Spec.Conversion == nil || !c.ConversionIsOurs() && !c.Copied()):
	default:
		work.Do(step.RestoreCRD{Pin: c.pin()})
	}
	return work
}

// pin identifies the object whose spec.conversion is written.
func (c *Converter) pin() step.Pin {
	if c.Composite == nil {
		return step.PinOf(c.CRD)
	}
	return step.Pin{Name: c.Composite.Name, UID: c.Composite.UID, ResourceVersion: c.Composite.ResourceVersion,
		Composite: schema.FromAPIVersionAndKind(c.Composite.APIVersion, c.Composite.Kind)}
}

// Progress says what a change of spec.conversion waits for: Crossplane, or else the given text.
func (c *Converter) Progress(otherwise string) string {
	switch {
	case c.CompositeProblem.Message != "":
		return c.CompositeProblem.Message
	case c.Composite == nil:
		return otherwise
	case c.ConversionIsOurs() && !c.Copied(), c.Composite.Spec.Conversion == nil && !c.Copied():
		return fmt.Sprintf("waiting for Crossplane to copy spec.conversion of %s to the CustomResourceDefinition; if that takes long, see the conditions and events of it", c.Composite)
	}
	return otherwise + fmt.Sprintf(", by spec.conversion of %s", c.Composite)
}

// Author names the field manager that last wrote spec.conversion, except the operator, and the object
// in which it did: if Crossplane only copied the conversion, that is the XRD.
func (c *Converter) Author() (manager, object string) {
	if c.Composite != nil && (!c.ConversionIsOurs() || c.Copied()) {
		return crds.ConversionWriter(c.Composite, c.Composite.Spec.Conversion, names.ManagedBy), "the CompositeResourceDefinition"
	}
	return crds.ConversionWriter(c.CRD, c.CRD.Spec.Conversion, names.ManagedBy), "the CustomResourceDefinition"
}
