// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compatibility

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// find lists files of earlier versions, and fails if there are none.
func find(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("testdata has nothing like %s: %v", pattern, err)
	}
	return files
}

// TestRulesets: the converter serves earlier rulesets, under the hash that a CRD names.
func TestRulesets(t *testing.T) {
	for _, file := range find(t, "*/rulesets/*.json") {
		t.Run(file, func(t *testing.T) {
			text, err := os.ReadFile(file)
			expect.NoError(t, err)
			ruleset, err := conversion.Load(text)
			expect.NoError(t, err)
			if want := strings.TrimSuffix(filepath.Base(file), ".json"); ruleset.Hash() != want {
				t.Errorf("the hash is %s, and was %s", ruleset.Hash(), want)
			}
			if _, err := conversion.NewConverter(ruleset); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestRecords: a migration resumes from earlier records.
func TestRecords(t *testing.T) {
	for _, file := range find(t, "*/records/*.json") {
		t.Run(file, func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			record, err := contract.ParseRecord(text)
			if err != nil {
				t.Fatal(err)
			}
			if record.Done() == 0 {
				t.Error("it has done nothing")
			}
		})
	}
}
