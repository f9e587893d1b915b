// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/incompressible"
)

const (
	// holdsNote is a value of v1beta1 that has a place at v1 by placing, and
	// holdsOwn one that has none.
	holdsNote  = `{"format":3,"rules":"","hidden":{"/spec/note":"precious"}}`
	holdsOwn   = `{"format":3,"rules":"","hidden":{"/spec/own":1}}`
	annotation = "conversion-operator.io/v1beta1.crontabs.example.com"

	testRuleset = `{"format":3,"crd":"crontabs.example.com","group":"example.com","kind":"CronTab","hub":"v1","versions":["v1","v1beta1"],` +
		`"spokes":[{"version":"v1beta1","root":{"onlySpoke":[{"path":["spec","own"]}]}}]}`
)

// holders has four objects: two preserve a value that has a field now, and one preserves a value that has none.
func holders() *fakeAPI {
	api := newFakeAPI(0)
	for i, value := range []string{"", holdsNote, holdsOwn, holdsNote} {
		api.write(objectKey(i), "v1")
		if value != "" {
			api.preserve(objectKey(i), annotation, value)
		}
	}
	api.restores, api.onPath = true, func(Patch) error { return nil }
	return api
}

// holdersEngine returns an engine that knows the rules by which values are preserved.
func holdersEngine(t *testing.T, api *fakeAPI, store *fakeStore) *Engine {
	t.Helper()
	engine := newTestEngine(api, store)
	knowsRules(t, engine)
	return engine
}

func knowsRules(t *testing.T, e *Engine) {
	t.Helper()
	e.OldVersions, e.PageSize, e.Inventory = []string{"v1beta1"}, 3, inventoryOf(t, testRuleset)
}

// holders replaces the objects of a story.
func (s *stage) holders() {
	s.api, s.every = holders(), func(e *Engine) { knowsRules(s.T, e) }
}

var preservedStories = map[string]func(*stage){
	"restored": func(s *stage) {
		s.holders()
		s.pod(nil)
	},
	"restored-again": func(s *stage) {
		s.holders()
		s.pod(nil)
		s.pod(func(e *Engine, _ context.CancelFunc) { s.store = &fakeStore{}; e.Checkpoints = s.store })
	},
	// A write that only changes the storage version is not counted as a restore.
	"not-restored-by-storage-version": func(s *stage) {
		s.holders()
		s.api.restores = false
		s.api.write(objectKey(1), "v1beta1")
		s.pod(nil)
	},
	// An object is migrated even if a write at the version of its value is refused.
	"restore-refused-by-schema": func(s *stage) { s.restoreRefused(invalid("a001")) },
	"restore-without-endpoint": func(s *stage) {
		s.restoreRefused(apierrors.NewNotFound(testResource.GroupResource(), ""))
	},
	"restore-at-unserved-version": func(s *stage) {
		s.holders()
		s.pod(func(e *Engine, _ context.CancelFunc) { e.OldVersions = nil })
	},
	// Values of the storage version are restored by a write at another version.
	"restore-of-storage-version": func(s *stage) {
		s.holders()
		s.api.preserve(objectKey(0), "conversion-operator.io/v1.crontabs.example.com", holdsNote)
		s.pod(nil)
	},
	"restore-of-deleted-object": func(s *stage) {
		s.holders()
		s.api.onPath = func(patch Patch) error {
			if patch.Name == "a001" {
				s.api.remove("ns/a001")
			}
			return nil
		}
		s.pod(nil)
	},
	// The values violate the schema. The objects are checked again without further writes at other versions.
	"restored-is-verified": func(s *stage) {
		s.holders()
		s.api.restores = false
		s.pod(func(e *Engine, _ context.CancelFunc) { e.Verify = v1alpha1.MigrationVerifyFull })
	},
	// A run that began without rules counts nothing.
	"counted-by-one-ruleset": func(s *stage) {
		s.holders()
		s.pod(func(e *Engine, kill context.CancelFunc) {
			e.Inventory = nil
			saves := 0
			s.store.afterSave = func(string) {
				if saves++; saves == 3 {
					kill()
				}
			}
		})
		s.pod(nil)
	},
	// A retry continues the count of the previous run, from its start.
	"count-of-a-retry": func(s *stage) {
		s.holders()
		before := s.store
		s.api.onPatch = refusals{objectKey(2): invalid("a002")}.of
		s.pod(nil)
		s.pod(func(e *Engine, _ context.CancelFunc) {
			s.api.onPatch, s.store = nil, &fakeStore{}
			expect.NoError(s, s.clock.Sleep(s.Context(), time.Hour))
			e.Spec.Run, e.PreviousRun, e.Checkpoints = "run-2", before, s.store
		})
	},
}

func (s *stage) restoreRefused(err error) {
	s.holders()
	s.api.onPath = func(patch Patch) error { return refusals{"a001": err}.of(patch.Name) }
	s.api.write(objectKey(1), "v1beta1")
	s.pod(nil)
}

func inventoryOf(t *testing.T, ruleset string) *Inventory {
	t.Helper()
	inventory, err := NewInventory([]byte(ruleset), "v1")
	expect.NoError(t, err)
	return inventory
}

type rulesets map[string]string

func (r rulesets) Ruleset(_ context.Context, configMap, hash string) ([]byte, error) {
	return []byte(r[configMap+"/"+hash]), nil
}

func TestReadInventory(t *testing.T) {
	stored := rulesets{"rulesets/good": testRuleset, "rulesets/bad": "{"}
	for name, want := range map[string]bool{"good": true, "bad": false, "gone": false} {
		spec := &contract.Spec{Ruleset: name, RulesetConfigMap: "rulesets", Resource: metav1.GroupVersionResource{Version: "v1"}}
		got, err := ReadInventory(t.Context(), stored, spec, newFakeClock())
		if err != nil || (got != nil) != want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// TestTruncatedIsNotWritten checks that an object that was read in a truncated form fails without a
// write, also during verification, and that the others are migrated.
func TestTruncatedIsNotWritten(t *testing.T) {
	ruleset := strings.Replace(testRuleset, `"hub"`, `"truncating":{"key":"of the test"},"hub"`, 1)
	rules, err := conversion.Load([]byte(ruleset))
	expect.NoError(t, err)
	converter, err := conversion.NewConverter(rules)
	expect.NoError(t, err)
	object := `{"apiVersion":"example.com/v1beta1","kind":"CronTab","metadata":{"name":"a"},"spec":{"own":"` + incompressible.Text(400<<10) + `"}}`
	converted, err := converter.Convert(nil, []byte(object), "v1")
	expect.NoError(t, err)
	var truncated metav1.PartialObjectMetadata
	expect.NoError(t, json.Unmarshal(converted, &truncated))
	if omitted := converter.OmittedIn(converted); omitted == nil || omitted.Bytes < 400<<10 {
		t.Fatalf("it is not truncated: %+v", omitted)
	}

	api := holders()
	engine := holdersEngine(t, api, &fakeStore{})
	api.preserve(objectKey(2), annotation, truncated.Annotations[annotation])
	engine.Inventory, engine.Verify = inventoryOf(t, ruleset), v1alpha1.MigrationVerifyFull
	written := map[string]int{}
	api.onPatch = func(key string) error {
		written[key]++
		return nil
	}
	record, err := engine.Run(t.Context())
	expect.NoError(t, err)
	if written[objectKey(2)] != 0 || len(written) != 3 {
		t.Errorf("written are %v", written)
	}
	if len(record.Failures) != 1 || record.Failures[0].Reason != v1alpha1.FailureTooLarge || !strings.Contains(record.Failures[0].Message, "make .spec.own smaller") {
		t.Errorf("failures are %+v", record.Failures)
	}
}
