// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var (
	gateOf     = regexp.MustCompile(`(?m)^\t\{v1alpha1\.\w+Condition, (.*)\},$`)
	roomOf     = regexp.MustCompile(`return p\.(\w+)\.(\w+)\(`)
	gateInTold = regexp.MustCompile(`(?m)^//\t[A-Z(][\w ]+\)? +(\w+/\w+\.go) `)
)

// TestGatesAreTold: doc.go names the file of each gate, in the order of passing.
func TestGatesAreTold(t *testing.T) {
	sources := map[string]string{}
	for _, pattern := range []string{"*.go", "*/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			sources[filepath.ToSlash(file)] = string(text)
		}
	}
	var passed, told []string
	for _, gate := range gateOf.FindAllStringSubmatch(sources["plan.go"], -1) {
		room := roomOf.FindStringSubmatch(gate[1])
		for file, text := range sources {
			if strings.HasPrefix(file, room[1]+"/") &&
				regexp.MustCompile(`(?m)^func \(\w \*\w+\) `+room[2]+`\(`).MatchString(text) {
				passed = append(passed, file)
			}
		}
	}
	for _, line := range gateInTold.FindAllStringSubmatch(sources["doc.go"], -1) {
		told = append(told, line[1])
	}
	if diff := cmp.Diff(passed, told); diff != "" || len(passed) == 0 {
		t.Errorf("files of gates (-plan.go +doc.go):\n%s", diff)
	}
}
