//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"slices"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestOrders applies a policy and the versions of its CRD in every order. Reads at the end are
// correct if there was no unconverted window. Otherwise the policy lists the objects that were
// written in it.
func TestOrders(t *testing.T) {
	t.Parallel()
	orders := map[string]struct {
		play func(t *testing.T, group string)
		// written are the objects that were written in the window; nil without a window.
		written []string
	}{
		"policy first":                   {policyFirst, nil},
		"rules for a version to come":    {rulesAhead, nil},
		"version first":                  {versionFirst, []string{"default/at-new"}},
		"version added and stored":       {storageAtOnce, []string{"default/at-new", "default/at-old"}},
		"policy after the fact":          {policyAfter, []string{"default/at-new"}},
		"nothing written in between":     {nothingWritten, []string{}},
		"kubectl replace drops the rest": {replaced, []string{"default/late"}},
	}
	for name, order := range orders {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			group := dns(name) + ".orders.example.com"
			order.play(t, group)
			if order.written == nil {
				checkNoGap(t, group)
			} else {
				checkGap(t, group, order.written)
			}
			checkAtRest(t, "crontabs."+group)
		})
	}
}

func policyFirst(t *testing.T, group string) {
	createPolicy(t, group, nil)
	define(t, group, "v1beta1")
	createCronTab(t, group, "v1beta1", "before", "a.example.com:1")
	waitReady(t, "crontabs."+group, v1alpha1.ReasonWaitingForVersion)
	serve(t, group, "v1beta1", "v1")
	checkNeverWrong(t, group)
	waitReady(t, "crontabs."+group, v1alpha1.ReasonSucceeded)
	checkReads(t, group, "before", "a.example.com", "1")
}

// rulesAhead: the rules name a version that is added later.
func rulesAhead(t *testing.T, group string) {
	define(t, group, "v1beta1")
	createPolicy(t, group, nil)
	waitReady(t, "crontabs."+group, v1alpha1.ReasonWaitingForVersion)
	createCronTab(t, group, "v1beta1", "before", "a.example.com:1")
	serve(t, group, "v1", "v1beta1")
	waitReady(t, "crontabs."+group, v1alpha1.ReasonSucceeded)
	checkReads(t, group, "before", "a.example.com", "1")
}

func versionFirst(t *testing.T, group string) {
	addVersion(t, group, "v1beta1", "v1")
	checkReads(t, group, "at-old", "c.example.com", "3")
}

func storageAtOnce(t *testing.T, group string) { addVersion(t, group, "v1", "v1beta1") }

// addVersion serves versions, the first of them stored, and writes at both before the converter is
// active.
func addVersion(t *testing.T, group string, versions ...string) {
	t.Helper()
	define(t, group, "v1beta1")
	createCronTab(t, group, "v1beta1", "before", "a.example.com:1")
	misbehave(t, "crontabs."+group, faults{Manager: fault{NotFound: true}})
	createPolicy(t, group, nil)
	waitForServed(t, group, "v1beta1")
	<-time.After(time.Second) // managedFields record seconds
	serve(t, group, versions...)
	createCronTab(t, group, "v1", "at-new", "b.example.com:2")
	createCronTab(t, group, "v1beta1", "at-old", "c.example.com:3")
	misbehave(t, "crontabs."+group, faults{})
	waitReady(t, "crontabs."+group, v1alpha1.ReasonSucceeded)
	checkReads(t, group, "before", "a.example.com", "1")
}

func policyAfter(t *testing.T, group string) {
	define(t, group, "v1beta1", "v1")
	createCronTab(t, group, "v1beta1", "at-old", "a.example.com:1")
	createCronTab(t, group, "v1", "at-new", "b.example.com:2")
	createPolicy(t, group, nil)
	waitReady(t, "crontabs."+group, v1alpha1.ReasonSucceeded)
	checkReads(t, group, "at-old", "a.example.com", "1")
}

func nothingWritten(t *testing.T, group string) {
	define(t, group, "v1beta1", "v1")
	createPolicy(t, group, nil)
	waitReady(t, "crontabs."+group, v1alpha1.ReasonSucceeded)
}

// replaced: dropping spec.conversion opens a window, however short.
func replaced(t *testing.T, group string) {
	policyFirst(t, group)
	name := "crontabs." + group
	createCronTab(t, group, "v1beta1", "early", "b.example.com:2")
	patch(t, getPolicy(t, name), `{"spec":{"paused":true}}`)
	waitFor(t, name, v1alpha1.ReadyCondition, "Unknown", v1alpha1.ReasonPaused, nil)
	<-time.After(time.Second) // managedFields record seconds
	changeCRD(t, name, func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
	})
	createCronTab(t, group, "v1", "late", "c.example.com:3")
	patch(t, getPolicy(t, name), `{"spec":{"paused":false}}`)
	waitReady(t, name, v1alpha1.ReasonSucceeded)
}

// serve changes the versions like kubectl apply, which keeps spec.conversion.
func serve(t *testing.T, group string, versions ...string) {
	t.Helper()
	changeCRD(t, "crontabs."+group, func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Versions = versionsOf(t, versions...) })
}

// waitForServed waits until the operator has seen the versions that are served.
func waitForServed(t *testing.T, group string, versions ...string) {
	t.Helper()
	expect.Eventually(t, "the operator has seen the versions", func() (bool, string) {
		crd := getPolicy(t, "crontabs."+group).Status.CRD
		return crd != nil && slices.Equal(crd.ServedVersions, versions), fmt.Sprint(crd)
	})
}

// checkNeverWrong: at a version without active rules, a read fails, or is correct.
func checkNeverWrong(t *testing.T, group string) {
	t.Helper()
	expect.Eventually(t, "the new version is read", func() (bool, string) {
		object, err := read(t, group, "v1", "before")
		if err != nil {
			return false, err.Error()
		}
		if object["host"] != "a.example.com" {
			t.Fatalf("read at v1 without its host: %v", object)
		}
		return true, ""
	})
}

func read(t *testing.T, group, version, name string) (map[string]any, error) {
	t.Helper()
	object := cronTab(group, version, name)
	err := cluster.Get(t.Context(), client.ObjectKeyFromObject(object), object)
	return object.Object, err
}

func checkReads(t *testing.T, group, name, host, port string) {
	t.Helper()
	expect.Eventually(t, name+" is read at both versions", func() (bool, string) {
		old, errOld := read(t, group, "v1beta1", name)
		now, errNow := read(t, group, "v1", name)
		got := fmt.Sprint(old["hostPort"], now["host"], now["port"], errOld, errNow)
		return got == fmt.Sprint(host+":"+port, host, port, nil, nil), got
	})
}

func checkNoGap(t *testing.T, group string) {
	t.Helper()
	expect.Equal(t, "status.unconvertedWindow", nil, getPolicy(t, "crontabs."+group).Status.UnconvertedWindow)
}

// checkGap: the status lists the objects, and the policy and the CRD have a warning event.
func checkGap(t *testing.T, group string, written []string) {
	t.Helper()
	name := "crontabs." + group
	var window *v1alpha1.UnconvertedWindow
	expect.Eventually(t, "the writes in the window are counted", func() (bool, string) {
		window = getPolicy(t, name).Status.UnconvertedWindow
		return window != nil && window.Written != nil, fmt.Sprintf("%+v", window)
	})
	expect.Equal(t, "objects in the window", written, append([]string{}, window.Objects...))
	expect.Equal(t, "count of the window", int64(len(written)), *window.Written)
	if window.Until.Before(&window.Since) {
		t.Errorf("the window ends at %s, before it began at %s", window.Until, window.Since)
	}
	if getPolicy(t, name).Status.Drift == nil {
		checkWarned(t, name, v1alpha1.ReasonServedUnconverted, "")
	}
	if len(written) > 0 {
		checkWarned(t, name, v1alpha1.ReasonWrittenUnconverted, "")
	}
}
