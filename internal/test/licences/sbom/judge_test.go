// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-cmp/cmp"
)

func theBinary() *binary {
	return &binary{Module: "example.com/own", Version: "v1.2.3", Licence: "ISC", Sum: "0abc",
		Modules: map[string]string{"example.com/other@v0.1.0": "1abc", "std@go1.26.0": ""}}
}

func theBill() *cyclonedx.BOM {
	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{
		Component:  &cyclonedx.Component{Name: "example.com/own", Version: "v1.2.3"},
		Properties: &[]cyclonedx.Property{{Name: "cdx:gomod:binary:hash:SHA-256", Value: "0abc"}},
	}
	bom.Components = &[]cyclonedx.Component{
		{Name: "example.com/other", Version: "v0.1.0", Hashes: &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: "1abc"}}},
		{Name: "std", Version: "go1.26.0"},
	}
	return bom
}

// sources returns folders with the licences of the modules.
func sources(t *testing.T) map[string]string {
	t.Helper()
	const isc = "Permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is hereby granted, " +
		"provided that the above copyright notice and this permission notice appear in all copies.\n\n" +
		`THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES WITH REGARD TO THIS SOFTWARE INCLUDING ALL ` +
		"IMPLIED WARRANTIES OF MERCHANTABILITY AND FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR ANY SPECIAL, DIRECT, " +
		"INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES WHATSOEVER RESULTING FROM LOSS OF USE, DATA OR PROFITS, WHETHER IN AN " +
		"ACTION OF CONTRACT, NEGLIGENCE OR OTHER TORTIOUS ACTION, ARISING OUT OF OR IN CONNECTION WITH THE USE OR PERFORMANCE OF THIS SOFTWARE.\n"
	directories := map[string]string{}
	for _, module := range []string{"example.com/own@v1.2.3", "example.com/other@v0.1.0"} {
		directory := t.TempDir()
		if err := os.WriteFile(filepath.Join(directory, "LICENSE"), []byte(isc), 0o600); err != nil {
			t.Fatal(err)
		}
		directories[module] = directory
	}
	return directories
}

func TestJudge(t *testing.T) {
	tests := map[string]struct {
		change func(bom *cyclonedx.BOM, made *binary)
		want   string
	}{
		"all is well": {change: func(*cyclonedx.BOM, *binary) {}},
		"another version": {
			change: func(_ *cyclonedx.BOM, made *binary) { made.Version = "v1.2.4" },
			want:   `the main component is "example.com/own@v1.2.3", and not "example.com/own@v1.2.4"`,
		},
		"another licence": {
			change: func(_ *cyclonedx.BOM, made *binary) { made.Licence = "MIT" },
			want:   `its licence is "ISC", and not "MIT"`,
		},
		"another binary": {
			change: func(_ *cyclonedx.BOM, made *binary) { made.Sum = "0abd" },
			want:   `the SHA-256 of the binary is "0abc", and not "0abd"`,
		},
		"other sources": {
			change: func(_ *cyclonedx.BOM, made *binary) { made.Modules["example.com/other@v0.1.0"] = "1abd" },
			want:   `the hash of example.com/other@v0.1.0 is "1abc", and not "1abd"`,
		},
		"a module is missing": {
			change: func(bom *cyclonedx.BOM, _ *binary) { *bom.Components = (*bom.Components)[:1] },
			want:   "std@go1.26.0 is not listed",
		},
		"a module too many": {
			change: func(_ *cyclonedx.BOM, made *binary) { delete(made.Modules, "std@go1.26.0") },
			want:   "std@go1.26.0 is listed, and not linked",
		},
		"a module without a licence": {
			change: func(bom *cyclonedx.BOM, _ *binary) { (*bom.Components)[0].Licenses = nil },
			want:   "example.com/other@v0.1.0 has no licence",
		},
		"no main component": {
			change: func(bom *cyclonedx.BOM, _ *binary) { bom.Metadata.Component = nil },
			want:   "it is no bill of materials of CycloneDX with a main component",
		},
		"another format": {
			change: func(bom *cyclonedx.BOM, _ *binary) { bom.BOMFormat = "SPDX" },
			want:   "it is no bill of materials of CycloneDX with a main component",
		},
	}
	directories := sources(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			bom, made := theBill(), theBinary()
			if err := addLicences(bom, directories); err != nil {
				t.Fatal(err)
			}
			test.change(bom, made)
			got := ""
			if err := judge(bom, made); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestUnknownModule: the sources of a module of another checkout cannot be found.
func TestUnknownModule(t *testing.T) {
	directories := sources(t)
	delete(directories, "example.com/other@v0.1.0")
	err := addLicences(theBill(), directories)
	if err == nil || !strings.Contains(err.Error(), "example.com/other@v0.1.0: where its sources are is not known") {
		t.Errorf("it says %v", err)
	}
}
