// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/CycloneDX/cyclonedx-go"

	"github.com/conversion-operator/conversion-operator/internal/test/licences"
)

// licenceOfGo is the licence of the standard library, whose text is missing from some
// installations.
const licenceOfGo = "BSD-3-Clause"

// notOfSPDX are licences without an SPDX identifier.
var notOfSPDX = map[string]bool{"GooglePatentsFile": true}

// addLicences adds to each component the licences in its folder.
func addLicences(bom *cyclonedx.BOM, directories map[string]string) error {
	for _, component := range components(bom) {
		found := []string{licenceOfGo}
		if component.Name != standardLibrary {
			directory, linked := directories[name(component)]
			if !linked {
				return fmt.Errorf("%s: where its sources are is not known; is the binary that of this checkout?", name(component))
			}
			var err error
			if found, err = licences.In(directory); err != nil {
				return err
			}
		}
		component.Licenses = &cyclonedx.Licenses{}
		for _, id := range slices.Compact(slices.Sorted(slices.Values(found))) {
			licence := &cyclonedx.License{ID: id}
			if notOfSPDX[id] {
				licence = &cyclonedx.License{Name: id}
			}
			*component.Licenses = append(*component.Licenses, cyclonedx.LicenseChoice{License: licence})
		}
	}
	return nil
}

// judge compares a bill of materials with the binary, and returns every difference.
func judge(bom *cyclonedx.BOM, made *binary) error {
	if bom.BOMFormat != cyclonedx.BOMFormat || bom.Metadata == nil || bom.Metadata.Component == nil {
		return errors.New("it is no bill of materials of CycloneDX with a main component")
	}
	var wrong []error
	differs := func(what, is, should string) {
		if is != should {
			wrong = append(wrong, fmt.Errorf("%s is %q, and not %q", what, is, should))
		}
	}
	own := bom.Metadata.Component
	differs("the main component", name(own), made.name())
	differs("its licence", licenceOf(own), made.Licence)
	differs("the SHA-256 of the binary", property(bom, "cdx:gomod:binary:hash:SHA-256"), made.Sum)

	listed := map[string]string{}
	for _, component := range components(bom)[1:] {
		listed[name(component)] = sumOf(component)
		if licenceOf(component) == "" {
			wrong = append(wrong, fmt.Errorf("%s has no licence", name(component)))
		}
	}
	for _, module := range slices.Sorted(maps.Keys(made.Modules)) {
		sum, found := listed[module]
		if !found {
			wrong = append(wrong, fmt.Errorf("%s is not listed", module))
			continue
		}
		differs("the hash of "+module, sum, made.Modules[module])
		delete(listed, module)
	}
	for _, module := range slices.Sorted(maps.Keys(listed)) {
		wrong = append(wrong, fmt.Errorf("%s is listed, and not linked", module))
	}
	return errors.Join(wrong...)
}

// components returns all components, the main one first.
func components(bom *cyclonedx.BOM) []*cyclonedx.Component {
	all := []*cyclonedx.Component{}
	if bom.Metadata != nil && bom.Metadata.Component != nil {
		all = append(all, bom.Metadata.Component)
	}
	if bom.Components != nil {
		for i := range *bom.Components {
			all = append(all, &(*bom.Components)[i])
		}
	}
	return all
}

func name(component *cyclonedx.Component) string { return component.Name + "@" + component.Version }

func licenceOf(component *cyclonedx.Component) string {
	if component.Licenses == nil {
		return ""
	}
	var names []string
	for _, choice := range *component.Licenses {
		names = append(names, choice.License.ID+choice.License.Name)
	}
	return strings.Join(names, " and ")
}

func sumOf(component *cyclonedx.Component) string {
	if component.Hashes == nil {
		return ""
	}
	for _, hash := range *component.Hashes {
		if hash.Algorithm == cyclonedx.HashAlgoSHA256 {
			return hash.Value
		}
	}
	return ""
}

func property(bom *cyclonedx.BOM, name string) string {
	if bom.Metadata.Properties == nil {
		return ""
	}
	for _, property := range *bom.Metadata.Properties {
		if property.Name == name {
			return property.Value
		}
	}
	return ""
}
