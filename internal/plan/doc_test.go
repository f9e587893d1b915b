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
	gateOf     = regexp.MustCompile(`(?m)^\t\{v1alpha1\.\w+Condition, (\w+)\},$`)
	gateInTold = regexp.MustCompile(`(?m)^//\t[A-Z(][\w ]+\)? +(\w+\.go) `)
)

// TestGatesAreTold: doc.go names the file of each gate, in the order of passing.
func TestGatesAreTold(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	sources := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		sources[file] = string(text)
	}
	var passed, told []string
	for _, gate := range gateOf.FindAllStringSubmatch(sources["plan.go"], -1) {
		for file, text := range sources {
			if strings.Contains(text, "\nfunc "+gate[1]+"(") {
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
