// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/plan/step"
)

// huge is an object that does not fit at v1beta1, as it was seen now.
func (w *world) huge(name string) v1alpha1.OversizedObject {
	return v1alpha1.OversizedObject{Object: "default/" + name, Version: "v1beta1", FieldsOf: "v1", Fields: []string{".spec.blob"}, Bytes: 400_000, LastTime: metav1.NewTime(w.observed.Now)}
}

func (w *world) expectOversized(names ...string) {
	w.t.Helper()
	var got []string
	if known := w.observed.Policy.Status.OversizedObjects; known != nil {
		for _, row := range known.Examples {
			got = append(got, strings.TrimPrefix(row.Object, "default/"))
		}
		if int(known.Objects) != len(names) {
			w.t.Errorf("%d objects are known, want %v", known.Objects, names)
		}
	}
	if strings.Join(got, " ") != strings.Join(names, " ") {
		w.t.Errorf("known are %v, want %v", got, names)
	}
	condition := apimeta.FindStatusCondition(w.observed.Policy.Status.Conditions, v1alpha1.OversizedObjectsCondition)
	if (condition != nil) != (len(names) > 0) {
		w.t.Errorf("the condition is %v", condition)
	}
	if condition != nil && !strings.Contains(condition.Message, "object default/"+names[0]+" does not fit at v1beta1: .spec.blob, which only v1 has, needs 400000 of the") {
		w.t.Errorf("it says %s", condition.Message)
	}
}

// TestOversizedObjects are known from samples and converter pods until they were read
// again, whatever manager there is, and for a day where nothing is read.
func TestOversizedObjects(t *testing.T) {
	w := newWorld(t, policyYAML)
	w.observed.Policy.Spec.Migration.Mode = v1alpha1.MigrationOnTrigger
	w.samples.Oversized = []v1alpha1.OversizedObject{w.huge("sampled")}
	w.applyCRD(bothStoredNew)
	w.converge()
	w.expectOversized("sampled")
	w.observed.Pods[0].Oversized = []v1alpha1.OversizedObject{w.huge("told")}
	w.observed.Pods[1].Oversized = []v1alpha1.OversizedObject{w.huge("told")}
	w.converge()
	w.expectOversized("sampled", "told")
	rest := w.snapshot()
	w.observed.Pods[0].Oversized = []v1alpha1.OversizedObject{w.huge("told")}
	w.carryOut(w.plan())
	w.observed.Pods[0].Oversized = w.observed.Pods[1].Oversized
	if w.snapshot() != rest {
		t.Error("what was seen again is written again")
	}

	// Another manager, and pods that were started since, know what the status has.
	w.observed.Samples, w.observed.Pods[0].Oversized, w.observed.Pods[1].Oversized = nil, nil, nil
	w.converge()
	w.expectOversized("sampled", "told")

	w.observed.Policy.Spec.Verification.ResampleInterval = &metav1.Duration{Duration: 6 * time.Hour}
	asked := 0
	w.resampled = observed.BackgroundCheck{Objects: 3}
	for range 200 {
		w.observed.Now = w.observed.Now.Add(10 * time.Second)
		decided := w.plan()
		for _, s := range decided.Steps {
			if again, is := s.(step.TakeSamples); is && again.Again {
				asked++
				if len(again.Oversized) != 2 {
					t.Fatalf("to be read again are %+v", again.Oversized)
				}
				told := w.huge("told")
				w.resampled = observed.BackgroundCheck{Objects: 3, Whole: again.Oversized[:1], Oversized: []v1alpha1.OversizedObject{told}}
			}
		}
		w.carryOut(decided)
		if asked > 0 && len(w.observed.Policy.Status.OversizedObjects.Examples) == 1 {
			break
		}
	}
	w.expectOversized("told")
	if checked := w.observed.Policy.Status.OversizedObjects.CheckedTime; checked == nil {
		t.Error("status.oversizedObjects.checkedTime is missing")
	}

	w.observed.Resampled, w.observed.Policy.Spec.Verification.ResampleInterval = nil, &metav1.Duration{}
	w.wait(23 * time.Hour)
	w.expectOversized("told")
	w.wait(2 * time.Hour)
	w.expectOversized()
}

// TestOversizedObjectsOfNobody: where nothing is truncated, nothing is too large.
func TestOversizedObjectsOfNobody(t *testing.T) {
	for name, change := range map[string]func(*world){
		"dropped":  func(w *world) { w.observed.Policy.Spec.Converter.Declarative.Overflow = v1alpha1.OverflowDrop },
		"disabled": func(w *world) { w.observed.Settings.SizeAdmission = false },
	} {
		t.Run(name, func(t *testing.T) {
			w := active(t)
			w.observed.Pods[0].Oversized = []v1alpha1.OversizedObject{w.huge("told")}
			w.carryOut(w.plan())
			w.expectOversized("told")
			change(w)
			w.carryOut(w.plan())
			w.expectOversized()
		})
	}
}

// TestPromotionOfWhatHasNoRoom: nothing is truncated to a storage version with a scale,
// so that objects that have no room there could not be read.
func TestPromotionOfWhatHasNoRoom(t *testing.T) {
	w := active(t)
	w.observed.CRD.Spec.Versions[0].Subresources = &apiextensionsv1.CustomResourceSubresources{Scale: &apiextensionsv1.CustomResourceSubresourceScale{}}
	w.observed.Pods[0].Oversized = []v1alpha1.OversizedObject{w.huge("told")}
	w.observed.Policy.Spec.StorageVersion = "v1beta1"
	w.converge()
	expectCondition(t, w.observed.Policy.Status, v1alpha1.StorageMigratedCondition, "False", v1alpha1.ReasonPromotionRefused, "object default/told does not fit at v1beta1 with .spec.blob of v1")
}
