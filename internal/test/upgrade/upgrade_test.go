// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/operator/verify"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/golden"
)

const recorded = "v0.1"

// TestStoredRuleset: a converter serves a ruleset of an earlier release, and restores what a converter
// of that release preserved.
func TestStoredRuleset(t *testing.T) {
	original := read(t, "testdata/object.json")
	if golden.Update() {
		recordRuleset(t, original)
	}
	each(t, func(t *testing.T, folder string) {
		stored := &corev1.ConfigMap{}
		expect.NoError(t, yaml.UnmarshalStrict(read(t, folder, "rulesets.yaml"), stored))
		if len(stored.BinaryData) != 1 {
			t.Fatalf("%d rulesets are stored, want 1", len(stored.BinaryData))
		}
		for key, text := range stored.BinaryData {
			hash, is := conversion.StoredHash(key)
			if !is {
				t.Fatalf("%s is no ruleset", key)
			}
			ruleset, err := conversion.LoadStored(hash, text)
			expect.NoError(t, err)
			back := convert(t, ruleset, read(t, folder, "object.json"), "v1beta1")
			expect.Equal(t, "the object comes back changed", decode(t, original), decode(t, back))
		}
	})
}

// TestRecord: a migration continues from a record of an earlier release.
func TestRecord(t *testing.T) {
	want := runningRecord()
	if golden.Update() {
		text, err := json.Marshal(want)
		expect.NoError(t, err)
		write(t, text, "record.json")
	}
	each(t, func(t *testing.T, folder string) {
		got, err := contract.ParseRecord(read(t, folder, "record.json"))
		expect.NoError(t, err)
		expect.Equal(t, "record", want, got)
	})
}

func recordRuleset(t *testing.T, original []byte) {
	t.Helper()
	policy, crd := &v1alpha1.ConversionPolicy{}, &apiextensionsv1.CustomResourceDefinition{}
	expect.NoError(t, yaml.UnmarshalStrict(read(t, "testdata/policy.yaml"), policy))
	expect.NoError(t, yaml.UnmarshalStrict(read(t, "testdata/crd.yaml"), crd))
	result, errs := verify.Compile(policy, crd)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	text, err := result.Ruleset.Marshal()
	expect.NoError(t, err)
	stored := &corev1.ConfigMap{BinaryData: map[string][]byte{conversion.StoredName("widgets", conversion.HashOf(text)): conversion.Store(text)}}
	stored.Name = "rulesets"
	manifest, err := yaml.Marshal(stored)
	expect.NoError(t, err)
	write(t, manifest, "rulesets.yaml")
	write(t, convert(t, result.Ruleset, original, "v1"), "object.json")
}

func runningRecord() contract.Record {
	start := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Local())
	counters := contract.Counters{Total: 6, Rewritten: 2, Current: 1, Failed: 1}
	return contract.Record{
		Format: contract.RecordFormat, Run: "c3bd028d", CRDUID: "crd-1", CRDGeneration: 3, State: contract.StateRunning,
		BarrierKind: contract.BarrierAllServers, APIServers: 1, Barrier: "8186", Counters: counters,
		Checkpoint: contract.Checkpoint{Pages: 2, Continue: "token", Counters: counters},
		Failures:   []v1alpha1.MigrationFailure{{Object: "ns/a", Reason: v1alpha1.FailureInvalid, Message: "no"}},
		Ruleset:    "0123456789abcdef", Preserved: &conversion.Holdings{Seen: 3, Objects: 1, Bytes: 40}, StartTime: &start,
	}
}

// each runs a test for the folder of each release.
func each(t *testing.T, test func(t *testing.T, folder string)) {
	t.Helper()
	folders, err := filepath.Glob("testdata/v*")
	expect.NoError(t, err)
	if len(folders) == 0 {
		t.Fatal("nothing is recorded")
	}
	for _, folder := range folders {
		t.Run(filepath.Base(folder), func(t *testing.T) { test(t, folder) })
	}
}

func convert(t *testing.T, ruleset *conversion.Ruleset, object []byte, to string) []byte {
	t.Helper()
	c, err := conversion.NewConverter(ruleset)
	expect.NoError(t, err)
	converted, err := c.Convert(nil, object, to)
	expect.NoError(t, err)
	return converted
}

func decode(t *testing.T, text []byte) (value any) {
	t.Helper()
	expect.NoError(t, json.Unmarshal(text, &value))
	return value
}

func read(t *testing.T, path ...string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	expect.NoError(t, err)
	return text
}

func write(t *testing.T, text []byte, name string) {
	t.Helper()
	expect.NoError(t, os.WriteFile(filepath.Join("testdata", recorded, name), text, 0o600))
}
