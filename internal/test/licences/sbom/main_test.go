// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"debug/buildinfo"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"

	"github.com/CycloneDX/cyclonedx-go"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

const isc = "Permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is hereby granted, " +
	"provided that the above copyright notice and this permission notice appear in all copies.\n\n" +
	`THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES WITH REGARD TO THIS SOFTWARE INCLUDING ALL ` +
	"IMPLIED WARRANTIES OF MERCHANTABILITY AND FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR ANY SPECIAL, DIRECT, " +
	"INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES WHATSOEVER RESULTING FROM LOSS OF USE, DATA OR PROFITS, WHETHER IN AN " +
	"ACTION OF CONTRACT, NEGLIGENCE OR OTHER TORTIOUS ACTION, ARISING OUT OF OR IN CONNECTION WITH THE USE OR PERFORMANCE OF THIS SOFTWARE.\n"

func TestSBOM(t *testing.T) {
	tests := map[string]struct {
		change func(bom *cyclonedx.BOM, info *buildinfo.BuildInfo, directories map[string]string)
		want   string
	}{
		"all is well": {func(*cyclonedx.BOM, *buildinfo.BuildInfo, map[string]string) {}, ""},
		"another binary": {func(_ *cyclonedx.BOM, info *buildinfo.BuildInfo, _ map[string]string) {
			info.Main.Path = "example.com/mine"
		},
			"the main component is example.com/own, and not example.com/mine"},
		"other sources": {func(_ *cyclonedx.BOM, info *buildinfo.BuildInfo, _ map[string]string) { info.Deps[0].Sum = "h1:Gr0=" },
			`the hash of example.com/other@v0.1.0 is "1abc", and not "1abd"`},
		"a module is missing": {func(bom *cyclonedx.BOM, _ *buildinfo.BuildInfo, _ map[string]string) {
			*bom.Components = (*bom.Components)[:1]
		},
			"std@go1.26.0 is not listed"},
		"a module too many": {func(_ *cyclonedx.BOM, info *buildinfo.BuildInfo, _ map[string]string) { info.Deps = nil },
			"example.com/other@v0.1.0 is listed, and not linked"},
		"a module without a licence": {func(_ *cyclonedx.BOM, _ *buildinfo.BuildInfo, directories map[string]string) {
			directories["example.com/other@v0.1.0"] = t.TempDir()
		}, "example.com/other@v0.1.0 has no licence"},
		"a module of another checkout": {func(_ *cyclonedx.BOM, _ *buildinfo.BuildInfo, directories map[string]string) {
			delete(directories, "example.com/other@v0.1.0")
		}, "example.com/other@v0.1.0: where its sources are is not known; is the binary that of this checkout?"},
	}
	licensed := t.TempDir()
	expect.NoError(t, os.WriteFile(filepath.Join(licensed, "LICENSE"), []byte(isc), 0o600))
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			directories := map[string]string{"example.com/own@v1.2.3": licensed, "example.com/other@v0.1.0": licensed}
			info := &buildinfo.BuildInfo{GoVersion: "go1.26.0", Main: debug.Module{Path: "example.com/own"},
				Deps: []*debug.Module{{Path: "example.com/other", Version: "v0.1.0", Sum: "h1:Grw="}}}
			bom := cyclonedx.NewBOM()
			bom.Metadata = &cyclonedx.Metadata{Component: &cyclonedx.Component{Name: "example.com/own", Version: "v1.2.3"}}
			bom.Components = &[]cyclonedx.Component{
				{Name: "example.com/other", Version: "v0.1.0", Hashes: &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: "1abc"}}},
				{Name: "std", Version: "go1.26.0"},
			}
			test.change(bom, info, directories)
			err, got := addLicences(bom, directories), ""
			if err == nil {
				err = compare(bom, info)
			}
			if err != nil {
				got = err.Error()
			}
			expect.Equal(t, "result", test.want, got)
		})
	}
}
