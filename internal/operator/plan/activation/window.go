// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package activation

import (
	"fmt"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/rights"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
)

// An unconverted window is the time in which a CustomResourceDefinition serves several versions
// with the strategy None. There is none if the policy is applied before the second version.
// status.unconvertedWindow has its begin and end, and the objects that clients wrote in it:
// their data may be unconverted.
//
// The result is limited: API servers do not show in which version an object is stored.
// managedFields show at which version a client wrote, and when, to the second, but not each write.
// The resourceVersion of an object shows its latest write, unless it was written again later.

// measureWindow opens and closes a window, and has the writes in it counted.
func (a *Activation) measureWindow() {
	if a.CRD == nil {
		return
	}
	window, served := a.Status.UnconvertedWindow, crds.ServedVersions(a.CRD)
	switch open := a.Unconverted() && !a.None() && len(served) > 1; {
	case open && (window == nil || window.Until != nil):
		a.openWindow(served)
	case open: // already
	case window != nil && window.Until == nil && a.converter.Active:
		window.Until = a.Second()
	case window != nil && window.Until == nil:
		a.Status.UnconvertedWindow = nil // another converter, or one version again
	case a.mayCount():
		a.countWrites(window)
	}
}

// mayCount reports that the writes in a window are known as soon as they have been counted.
func (a *Activation) mayCount() bool {
	window := a.Status.UnconvertedWindow
	return window != nil && window.Until != nil && window.Written == nil &&
		a.converter.Active && !a.Policy.Spec.Paused && a.Policy.DeletionTimestamp.IsZero()
}

// CountsNext reports that writes are to be counted, and that this was not tried yet.
func (a *Activation) CountsNext() bool { return a.mayCount() && a.Written == nil }

func (a *Activation) openWindow(served []string) {
	var older int64
	if previous := a.Status.UnconvertedWindow; previous != nil {
		older = previous.OlderObjects
	}
	window := &v1alpha1.UnconvertedWindow{Since: a.windowSince(), OlderObjects: older}
	if window.Since.After(a.CRD.CreationTimestamp.Time) {
		window.ResourceVersion = a.CRD.ResourceVersion
	}
	a.Status.UnconvertedWindow = window
	if a.Drifted() {
		return // drift has its own events
	}
	a.work.Do(step.Warn{CRD: a.CRD, Reason: v1alpha1.ReasonServedUnconverted, Note: fmt.Sprintf(
		"the CustomResourceDefinition serves %s with conversion strategy None: until the converter of policy %s is active, "+
			"clients read what others wrote at another version without a conversion", strings.Join(served, ", "), a.Policy.Name)})
}

// windowSince is the begin of the window: the latest write of the CustomResourceDefinition if the
// operator saw the change, and otherwise its creation.
func (a *Activation) windowSince() metav1.Time {
	before := a.Policy.Status.CRD
	if before == nil || before.UID != a.CRD.UID || len(before.ServedVersions) > 1 && before.Strategy == apiextensionsv1.NoneConverter {
		return a.CRD.CreationTimestamp
	}
	since := a.CRD.CreationTimestamp
	for _, entry := range a.CRD.ManagedFields {
		if entry.Subresource == "" && entry.Time != nil && entry.Time.After(since.Time) {
			since = *entry.Time
		}
	}
	return since
}

func (a *Activation) countWrites(window *v1alpha1.UnconvertedWindow) {
	subject := window.Since.UTC().Format(time.RFC3339) + " " + window.Until.UTC().Format(time.RFC3339)
	check := a.Written
	switch {
	case rights.ToRead(a.Cluster).Missing() != "":
		a.work.Recheck(rights.Pause)
	case a.work.DueCheck(check, subject, a.Now):
		a.work.Do(rights.ToRead(a.Cluster).Steps()...)
		a.work.Do(step.CountWrites{Subject: subject, CRD: a.CRD, Reader: names.Reader(a.Policy.Name, a.Settings.Namespace),
			Since: window.Since.Time, Until: window.Until.Time, After: window.ResourceVersion, Storage: a.storedThroughout()})
	case check.Running:
	case check.Reason == "":
		window.Written, window.Objects, window.OlderObjects = new(int64(check.Objects)), check.Names, int64(check.Older)
		if check.Objects > 0 {
			a.work.Do(step.Warn{CRD: a.CRD, Reason: v1alpha1.ReasonWrittenUnconverted, Note: windowNote(window, crds.ServedVersions(a.CRD), check.AtLeast)})
		}
	}
}

// storedThroughout is the version in which every object was stored during the whole window; empty
// if it is unknown.
func (a *Activation) storedThroughout() string {
	if storage := crds.StorageVersion(a.CRD); crds.StoredOnlyIn(a.CRD, storage) {
		return storage
	}
	return ""
}

func windowNote(window *v1alpha1.UnconvertedWindow, served []string, atLeast bool) string {
	objects := strings.Join(window.Objects, ", ")
	if *window.Written > int64(len(window.Objects)) {
		objects += " and more"
	}
	least := ""
	if atLeast {
		least = "at least "
	}
	return least + fmt.Sprintf("%d objects were written between %s and %s, while %s were served without a conversion: %s: verify these objects",
		*window.Written, window.Since.UTC().Format(time.RFC3339), window.Until.UTC().Format(time.RFC3339), strings.Join(served, " and "), objects)
}
