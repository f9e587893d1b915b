// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command sbom reads the software bill of materials that cyclonedx-gomod made for a binary of this
// checkout, adds licences, and compares it with the module list in the binary. It writes the result only
// if they agree.
//
//	go run ./internal/test/licences/sbom BINARY FROM TO
package main

import (
	"context"
	"debug/buildinfo"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/CycloneDX/cyclonedx-go"

	"github.com/conversion-operator/conversion-operator/internal/test/licences"
)

const (
	// root is the root of the checkout, in which this command runs.
	root = "."
	// standardLibrary is the name of the standard library in the output of cyclonedx-gomod.
	standardLibrary = "std"
	// licenceOfGo is the licence of the standard library, whose text is missing from some
	// installations.
	licenceOfGo = "BSD-3-Clause"
)

// notOfSPDX are licences without an SPDX identifier.
var notOfSPDX = map[string]bool{"GooglePatentsFile": true}

func main() {
	err := errors.New("usage: sbom BINARY FROM TO")
	if len(os.Args) == 4 {
		err = run(os.Args[1], os.Args[2], os.Args[3])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(path, from, to string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return err
	}
	bom, err := read(from)
	if err != nil {
		return err
	}
	directories, err := licences.Linked(ctx, root, runtime.GOOS)
	if err != nil {
		return err
	}
	directories[name(bom.Metadata.Component)] = root
	if err := errors.Join(addLicences(bom, directories), compare(bom, info)); err != nil {
		return fmt.Errorf("%s is not what %s is made of:\n%w", from, path, err)
	}
	return write(bom, to)
}

func read(path string) (*cyclonedx.BOM, error) {
	file, err := os.Open(filepath.Clean(path))
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	bom := &cyclonedx.BOM{}
	err = cyclonedx.NewBOMDecoder(file, cyclonedx.BOMFileFormatJSON).Decode(bom)
	if err == nil && (bom.Metadata == nil || bom.Metadata.Component == nil || bom.Components == nil) {
		err = errors.New("it is no bill of materials of CycloneDX with components")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return bom, nil
}

func write(bom *cyclonedx.BOM, path string) error {
	file, err := os.Create(filepath.Clean(path))
	if err != nil {
		return err
	}
	err = cyclonedx.NewBOMEncoder(file, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
	return errors.Join(err, file.Close())
}

// addLicences adds to each component the licences in its folder.
func addLicences(bom *cyclonedx.BOM, directories map[string]string) error {
	all := []*cyclonedx.Component{bom.Metadata.Component}
	for i := range *bom.Components {
		all = append(all, &(*bom.Components)[i])
	}
	for _, component := range all {
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
		if len(found) == 0 {
			return fmt.Errorf("%s has no licence", name(component))
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

// compare returns every difference between the modules of a bill of materials and those of the binary.
func compare(bom *cyclonedx.BOM, info *buildinfo.BuildInfo) error {
	listed, linked, wrong := listedIn(bom), linkedIn(info), []error{}
	for _, module := range slices.Sorted(maps.Keys(linked)) {
		if sum, found := listed[module]; !found {
			wrong = append(wrong, fmt.Errorf("%s is not listed", module))
		} else if sum != linked[module] {
			wrong = append(wrong, fmt.Errorf("the hash of %s is %q, and not %q", module, sum, linked[module]))
		}
		delete(listed, module)
	}
	for _, module := range slices.Sorted(maps.Keys(listed)) {
		wrong = append(wrong, fmt.Errorf("%s is listed, and not linked", module))
	}
	if own := bom.Metadata.Component.Name; own != info.Main.Path {
		wrong = append(wrong, fmt.Errorf("the main component is %s, and not %s", own, info.Main.Path))
	}
	return errors.Join(wrong...)
}

// listedIn returns the components, as path@version, with their SHA-256.
func listedIn(bom *cyclonedx.BOM) map[string]string {
	listed := map[string]string{}
	for i := range *bom.Components {
		component := &(*bom.Components)[i]
		listed[name(component)] = ""
		if component.Hashes == nil {
			continue
		}
		for _, hash := range *component.Hashes {
			if hash.Algorithm == cyclonedx.HashAlgoSHA256 {
				listed[name(component)] = hash.Value
			}
		}
	}
	return listed
}

// linkedIn returns the modules of a binary without the main one, with the hashes of their sources, of
// which the standard library has none.
func linkedIn(info *buildinfo.BuildInfo) map[string]string {
	linked := map[string]string{standardLibrary + "@" + info.GoVersion: ""}
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		sum, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(module.Sum, "h1:")) // another sum is no hash in the bill
		linked[module.Path+"@"+module.Version] = fmt.Sprintf("%x", sum)
	}
	return linked
}

func name(component *cyclonedx.Component) string { return component.Name + "@" + component.Version }
