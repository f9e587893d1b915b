// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/golden"
)

// now is the time of all overviews.
var now = time.Date(2026, 11, 21, 22, 0, 0, 0, time.UTC)

// read returns the Overview of the policy and the pods in a folder of testdata.
func read(t *testing.T, folder string) *Overview {
	t.Helper()
	observed := Observed{
		Policy: expect.YAML[v1alpha1.ConversionPolicy](t, "testdata", folder, "policy.yaml"), Now: now, Program: "kubectl conversion",
		Namespace: "conversion-system", Instance: "crontabs-example-com-d884ab8c", PodsInstance: "crontabs-example-com-d884ab8c",
		Pods: []corev1.Pod{},
	}
	if _, err := os.Stat(filepath.Join("testdata", folder, "pods.yaml")); err != nil {
		observed.PodsUnknown = "pods is forbidden: User \"jane\" cannot list\n  resource \"pods\""
	} else {
		observed.Pods = *expect.YAML[[]corev1.Pod](t, "testdata", folder, "pods.yaml")
	}
	return Of(observed)
}

func folders(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join("testdata", "*", "policy.yaml"))
	if err != nil || len(found) == 0 {
		t.Fatalf("%v: %d policies", err, len(found))
	}
	var names []string
	for _, path := range found {
		names = append(names, filepath.Base(filepath.Dir(path)))
	}
	return names
}

func TestPages(t *testing.T) {
	for _, folder := range folders(t) {
		t.Run(folder, func(t *testing.T) {
			var out bytes.Buffer
			expect.NoError(t, read(t, folder).WritePage(&out, Page{}))
			golden.Check(t, out.String(), folder, "page.txt")
		})
	}
}

func TestWideAndColoredPage(t *testing.T) {
	var out bytes.Buffer
	expect.NoError(t, read(t, "migrating").WritePage(&out, Page{Wide: true, Colors: true}))
	golden.Check(t, out.String(), "migrating", "wide-colored.txt")
}

func TestTables(t *testing.T) {
	for file, page := range map[string]Page{"table.txt": {}, "wide.txt": {Wide: true}} {
		t.Run(file, func(t *testing.T) {
			var all []*Overview
			for _, folder := range folders(t) {
				one := read(t, folder)
				one.Name = folder + ".example.com"
				all = append(all, one)
			}
			var out bytes.Buffer
			expect.NoError(t, WriteTable(&out, all, page))
			golden.Check(t, out.String(), file)
		})
	}
}

func TestLines(t *testing.T) {
	var out bytes.Buffer
	for _, folder := range folders(t) {
		out.WriteString(read(t, folder).Line() + "\n")
	}
	golden.Check(t, out.String(), "lines.txt")
}

// TestSettled checks the state that --until-ready waits for.
func TestSettled(t *testing.T) {
	for folder, want := range map[string]bool{
		"migrating": false, "migration-suspended": false, "not-seen": false, "changed-since": false,
		"ready": true, "objects-failed": true, "invalid-rules": true, "paused": true,
	} {
		expect.Equal(t, folder+": Settled", want, read(t, folder).Settled)
	}
}

// TestControlCharacters: texts of pods and conditions cannot move the cursor.
func TestControlCharacters(t *testing.T) {
	policy := &v1alpha1.ConversionPolicy{}
	policy.Status.Conditions = []metav1.Condition{{Type: v1alpha1.RulesValidCondition, Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonNotEvaluated, Message: "not\x1b[2Jyet"}}
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "Image\x1b[2J\nGone"}}}}
	var out bytes.Buffer
	expect.NoError(t, Of(Observed{Policy: policy, Pods: []corev1.Pod{pod}, Now: now}).WritePage(&out, Page{}))
	expect.Equal(t, "the page has an escape character", false, strings.Contains(out.String(), "\x1b"))
	expect.Contains(t, "the page", out.String(), "Image[2J Gone", "not[2Jyet")
}
